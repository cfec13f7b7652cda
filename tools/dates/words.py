"""The words for dates and times in six languages: en, de, fr, es, zh, ja.

Each has the letter of its kind, which the grammar in ``moments.py`` is written in, and a value.
"""

import unicodedata
from typing import Final, NamedTuple


class Word(NamedTuple):
    """A word's kind, and its value or the name of its unit.

    D days from today, W weekday from Monday as 0, M month, U unit, N number, E the number one or
    "at" (``a``), P the half of the day in hours to add (``EVENING``: a late hour), A at, H o'clock,
    I in, G from now, X next, K next week, Q and B minutes to add to the hour behind or before, Z a
    time in minutes, J German and English "am", and a blank for what means
    nothing.
    """

    kind: str
    value: int = 0
    unit: str = ""


EVENING: Final = 18
"""The half of the day of words like "at night", of which 2 is no afternoon."""


def plain(text: str) -> str:
    """Return a text without accents, case and other differences in how the same is written."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(each for each in folded if not unicodedata.combining(each))


_NUMBERED: Final = {
    "N": (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "une deux trois quatre cinq six sept huit neuf dix onze douze",
        "una dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "一 二 三 四 五 六 七 八 九 十 十一 十二",
    ),
    "M": (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    ),
    "W": (
        "monday tuesday wednesday thursday friday saturday sunday",
        "mon tue wed thu fri sat sun",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "lunes martes miércoles jueves viernes sábado domingo",
        "周一 周二 周三 周四 周五 周六 周日",
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日",
        "月曜 火曜 水曜 木曜 金曜 土曜 日曜",
    ),
}
_DAYS: Final = (
    "today|heute|aujourd'hui|aujourd’hui|hoy|今天|今日|きょう",
    "tomorrow|morgen|demain|mañana|明天|明日|あした",
    (
        "the day after tomorrow|day after tomorrow|übermorgen|après-demain|pasado mañana"
        "|后天|後天|明後日|あさって"
    ),
)
_UNITS: Final = {
    "minute": "minute|minutes|min|minuten|minuto|minutos|分钟|分鐘|分間",
    "hour": "hour|hours|stunde|stunden|hora|horas|小时|小時|個小時|个小时|時間",
    "day": "day|days|tag|tage|tagen|jour|jours|día|días|天|日",
    "week": "week|weeks|woche|wochen|semaine|semaines|semana|semanas|周|星期|个星期|週間",
    "month": "month|months|monat|monate|monaten|mois|mes|meses|个月|個月|か月|ヶ月",
    "year": "year|years|jahr|jahre|jahren|ans|année|années|año|años|年",
}
_OTHERS: Final[dict[Word, str]] = {
    Word("N", 1): "an|ein|eine|einer|einem|un",
    Word("N", 2): "两|兩",
    Word("E", 1): "a|à",
    Word("W", 6): "星期天|周天",
    Word("J"): "am",
    Word("P", 0): "a.m.|a.m|morning|in the morning|früh|morgens|vormittags|matin|du matin"
    "|de la mañana|por la mañana|上午|早上|午前|朝",
    Word("P", 12): "pm|p.m.|p.m|afternoon|in the afternoon|nachmittag|nachmittags|après-midi"
    "|de l'après-midi|de la tarde|por la tarde|下午|午後",
    Word("P", EVENING): "evening|in the evening|at night|abend|abends|am abend|soir|du soir"
    "|de la noche|por la noche|晚上|夜",
    Word("A"): "at|@|um|a las|a la|gegen",
    Word("H"): "o'clock|uhr|h|heures|heure|点|點|点钟|時",
    Word("I"): "in|dans|en|dentro de",
    Word("G"): "from now|后|後|以后|之后",
    Word("X"): "next|this|coming|nächsten|nächster|nächste|diesen|kommenden|prochain|próximo|este",
    Word("K"): "next week|nächste woche|la semaine prochaine|la próxima semana|下|下个|下個|来週",
    Word("Q", 30): "half past",
    Word("Q", 15): "quarter past|viertel nach",
    Word("Q", -15): "quarter to|viertel vor",
    Word("Q", -30): "halb",
    Word("B", 30): "et demie|y media|半",
    Word("B", 15): "et quart|y cuarto",
    Word("Z", 720): "noon|midday|mittag|mittags|midi|mediodía|al mediodía|正午|中午",
    Word(" "): "on|the|of|le|el|la|den|der|de|del|due|by|bis|の|に|und",
}


def _words() -> dict[str, Word]:
    found: dict[str, Word] = {}
    for unit, names in _UNITS.items():
        found |= dict.fromkeys(names.split("|"), Word("U", unit=unit))
    for kind, rows in _NUMBERED.items():
        first = 0 if kind == "W" else 1
        for row in rows:
            found |= {name: Word(kind, n) for n, name in enumerate(row.split(), first)}
    for days, names in enumerate(_DAYS):
        found |= dict.fromkeys(names.split("|"), Word("D", days))
    for word, names in _OTHERS.items():
        found |= dict.fromkeys(names.split("|"), word)
    return {plain(name): word for name, word in found.items() if name}


WORDS: Final = _words()
"""Every word, without its accents."""
