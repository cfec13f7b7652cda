"""What marks a message as an answer, as something new, or as the end of it, in six languages."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from daruma.tools.dates import WORDS, moment_in, plain

# --- What marks a message as an answer, as something new, or as the end of it, in six languages.


def phrases(*rows: str) -> re.Pattern[str]:
    """Return what finds one of the phrases; of Latin letters whole words only."""
    each = sorted({plain(one) for row in rows for one in row.split("|")}, key=len, reverse=True)
    return re.compile("|".join(_whole(one) for one in each))


def _whole(phrase: str) -> str:
    if not phrase.isascii():
        return re.escape(phrase)
    return rf"(?<![a-z0-9]){re.escape(phrase)}(?![a-z0-9])"


def _latin(words: Iterable[str]) -> str:
    return "|".join(words)


CANCEL: Final = phrases(
    "cancel|never mind|nevermind|forget it|forget about it|drop it|stop it|leave it|skip it|abort"
    "|don't bother|not any more|not anymore|no longer needed|don't need it",
    "abbrechen|brich ab|vergiss es|vergiss das|lass es|lass gut sein|lass mal|egal|stornieren"
    "|nicht mehr nötig|doch nicht",
    "annule|annuler|laisse tomber|laissez tomber|oublie|oubliez|tant pis|pas la peine",
    "cancela|cancelar|olvídalo|olvídelo|déjalo|déjelo|no importa|da igual|mejor no",
    "算了|取消|不用了|不要了|不必了|没事了",
    "キャンセル|やめて|やめます|やっぱりいい|もういい|いらない|結構です|取り消",
)
GREETING: Final = phrases(
    "hello|hi|hey|good morning|good afternoon|good evening|thanks|thank you|bye|goodbye",
    "hallo|guten morgen|guten tag|guten abend|danke|tschüss|servus",
    "bonjour|bonsoir|salut|merci|au revoir",
    "hola|buenos días|buenas tardes|buenas noches|gracias|adiós",
    "你好|您好|谢谢|再见|早上好",
    "こんにちは|こんばんは|おはよう|ありがとう|さようなら",
)
ASKING: Final = phrases(
    "what|who|whose|why|where|how|which|when|is there|are there|can you|could you|would you"
    "|will you|do you|does|did|tell me",
    "was|wer|wie|warum|wieso|wo|wohin|welche|welcher|welches|wann|kannst du|könntest du|gibt es",
    "quel|quelle|quels|quelles|qui|que|quoi|comment|pourquoi|où|combien|peux-tu|pouvez-vous"
    "|est-ce que|qu'est-ce",
    "qué|quién|cómo|por qué|dónde|cuál|cuáles|cuánto|cuántos|cuándo|puedes|podrías|hay",
    "什么|谁|怎么|为什么|哪里|哪个|哪些|多少|能不能|可以吗|吗",
    "何|誰|なぜ|どこ|どうして|どうやって|どの|いくつ|ですか|ますか",
)
SAME_MATTER: Final = phrases(
    "do you ask|do you need|do you mean|you mean|is that possible|the options|are possible"
    "|meinst du|brauchst du|fragst du|veux-tu dire|quieres decir|什么意思|どういう意味"
)
"""Questions about the question."""
SUGGESTING: Final = phrases(
    "how about|what about|would|is fine|is ok|wie wäre|passt|que dirais-tu|ça va|qué tal"
    "|可以吗|好吗|どうですか|でいいですか"
)
REQUEST: Final = phrases(
    "create|add|make|write|show|list|tell|send|open|book|find|search|look|delete|remove|play|run"
    "|translate|summarize|summarise|explain|fix|build|refactor|generate|compute|calculate|draw|read"
    "|describe|compare|give me|help me|i want|i need|i would like|i'd like|start|install|update"
    "|remind me|schedule|check|let's talk|talk about",
    "erstelle|schreib|schreibe|zeig|zeige|such|suche|finde|öffne|lösche|übersetze|erkläre|erklär"
    "|fasse|führe|baue|berechne|sag mir|gib mir|hilf mir|ich möchte|ich brauche|ich will|lies"
    "|prüfe",
    "crée|écris|montre|cherche|trouve|ouvre|supprime|traduis|explique|résume|lance|corrige|calcule"
    "|dis-moi|donne-moi|aide-moi|je veux|je voudrais|j'ai besoin",
    "crea|escribe|muestra|muéstrame|busca|encuentra|abre|borra|traduce|explica|explícame|resume"
    "|ejecuta|corrige|calcula|dime|dame|ayúdame|quiero|necesito",
    "帮我|请帮|写|查一下|查找|搜索|告诉我|打开|删除|翻译|解释|总结|给我|我想|我要|运行",
    "教えて|作って|書いて|探して|検索して|開いて|削除して|翻訳して|説明して|要約して|見せて|してほしい",
)
INSTEAD: Final = phrases(
    "instead|something else|another thing|stattdessen|etwas anderes|plutôt|autre chose"
    "|en lugar|otra cosa|换一个|别的|代わりに|別の"
)
PRONOUN: Final = phrases("it|that one|this one|es|ihn|ça|lo|那|它|それ")
"""What stands for the action that was asked about."""
LEADING: Final = re.compile(
    r"(?:(?:"
    + "|".join(
        re.escape(plain(each))
        for each in [
            "how about",
            "what about",
            "make it",
            "let's say",
            "let's do",
            "let us say",
            "say",
            "ok",
            "okay",
            "sure",
            "yes",
            "yeah",
            "yep",
            "well",
            "hmm",
            "um",
            "then",
            "maybe",
            "perhaps",
            "please",
            "just",
            "no",
            "nope",
            "set it for",
            "put it in",
            "put it on",
            "i think",
            "i would say",
            "let it be",
            "am besten",
            "sagen wir",
            "bitte",
            "ja",
            "nein",
            "also",
            "vielleicht",
            "lieber",
            "disons",
            "oui",
            "non",
            "plutôt",
            "vale",
            "sí",
            "no",
            "mejor",
            "pues",
            "digamos",
            "好的",
            "好",
            "嗯",
            "那就",
            "はい",
            "いいえ",
            "じゃあ",
            "では",
        ]
    )
    + r")(?![a-z0-9])[\s,.:;，、。!-]*)+"
)
TRAILING: Final = re.compile(
    r"(?<![\s,.!?。！？，、])[\s,.!?。！？，、]*+(?:(?:(?<![a-z0-9])(?:"
    + "|".join(
        plain(each)
        for each in [
            "please",
            "then",
            "thanks",
            "thank you",
            "instead",
            "if possible",
            "would be best",
            "is fine",
            "is best",
            "bitte",
            "danke",
            "s'il te plaît",
            "s'il vous plaît",
            "merci",
            "por favor",
            "gracias",
            "吧",
            "好了",
            "谢谢",
            "でお願いします",
            "にしてください",
            "お願いします",
            "です",
        ]
    )
    + r")[\s,.!?。！？，、]*+)++$|(?<=[\s,.!?。！？，、])$)"
)
VAGUE_TIME: Final = phrases(
    "soon|later|whenever|asap|as soon as|as early as|morning|afternoon|evening|night|weekend|week"
    "|month|year|yearly|daily|weekly|o'clock|noon|midnight|before|after|hour|hours"
    "|christmas|easter",
    "bald|später|irgendwann|jederzeit|vormittag|nachmittag|abend|wochenende|woche|uhr|weihnachten",
    "bientôt|plus tard|n'importe quand|matin|après-midi|soir|semaine|noël|vers",
    "pronto|más tarde|cuando quieras|tarde|noche|semana|navidad",
    "以后|尽快|随时|上午|下午|晚上|早上|周|星期|点",
    "いつでも|後で|朝|午前|午後|夜|週|曜日|時",
    _latin(word for word, each in WORDS.items() if each.kind in "DWM" and len(word) > 3),
)
NUMBER: Final = phrases(
    "none|a dozen|dozen|a couple|couple|a few|both|half",
    _latin(word for word, each in WORDS.items() if each.kind == "N" and word not in ("an", "un")),
)


# --- What a message says besides a day or a time: one that says more may be another request. Pure.

LONGEST: Final = 6
"""Words of a moment that are tried together."""

_FILLING: Final = frozenset(
    plain(
        "a an the this that next last same at on in by of for to about around roughly any anytime "
        "sometime time day is be would will i me you it we think guess like prefer works work fine "
        "good ok okay best better great perfect suits please thanks possible then maybe perhaps "
        "am im um gegen der die das den dem ein einen etwa ungefähr so früh ist wäre passt geht "
        "mir ich gut bitte danke dann vielleicht "
        "le la les au aux vers ce cet cette du de des en pour est serait moi me va bien convient "
        "prochain prochaine merci alors "
        "el los las por para a del mi es sería bien próximo próxima mismo misma entonces"
    ).split()
)
"""Words that say nothing by themselves. None that negates is among them."""
_NUMBER: Final = re.compile(r"\d{1,4}(?:h|am|pm|st|nd|rd|th)?")


def besides_time(text: str, now: datetime) -> list[str] | None:
    """Return what a text in plain letters says besides time, None where it speaks of no time.

    Of a writing without spaces a single character more is none.
    """
    words = text.split()
    rest = " ".join(_without_moment(words, now))
    left = VAGUE_TIME.sub(" ", rest)
    if left == rest and rest == " ".join(words):
        return None
    return [word for word in re.findall(r"\w+", left) if not _says_nothing(word)]


def _without_moment(words: Sequence[str], now: datetime) -> Sequence[str]:
    """Return the words but for the longest ones next to each other that are a day or a time."""
    spans = (
        (at, at + n)
        for n in range(min(LONGEST, len(words)), 0, -1)
        for at in range(len(words) - n + 1)
    )
    for begins, ends in spans:
        if moment_in(" ".join(words[begins:ends]).strip(",.;:!?"), now):
            return [*words[:begins], *words[ends:]]
    return words


def _says_nothing(word: str) -> bool:
    lone = len(word) == 1 and not word.isascii()
    return lone or word in _FILLING or word in WORDS or _NUMBER.fullmatch(word) is not None
