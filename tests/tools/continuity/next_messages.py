"""What people say after they were asked for something, and whether it is the answer.

``KNOWN`` was there while the rule was made, ``HELD_OUT`` was written before the rule was finished,
and the rule was not changed for its sake: later only so as to leave more to the model, and for
paths, of which it has none.
"""

from typing import Literal, NamedTuple

from daruma.state.conversation import Clarification

DATE = Clarification(
    target_action="create_reminder",
    question="When should I remind you?",
    partial_args={"title": "Buy milk"},
    missing_fields=("reminder_date",),
)
TITLE = Clarification(
    target_action="create_todo", question="What is to be done?", missing_fields=("title",)
)
COUNT = Clarification(
    target_action="order",
    question="How many do you want?",
    partial_args={"item": "tickets"},
    missing_fields=("count",),
)
CHOICE = Clarification(
    target_action="create_event",
    question="Which calendar should it be in: work or home?",
    partial_args={"title": "Dinner"},
    missing_fields=("calendar",),
)

Wanted = Literal["resume", "stale"]


class Next(NamedTuple):
    """A message, what was asked before it, and what it is."""

    message: str
    after: Clarification
    wanted: Wanted


KNOWN = (
    Next("tomorrow at nine", DATE, "resume"),
    Next("2026-11-25", DATE, "resume"),
    Next("25.11.", DATE, "resume"),
    Next("Friday please", DATE, "resume"),
    Next("How about Friday at 5pm?", DATE, "resume"),
    Next("make it Monday", DATE, "resume"),
    Next("in two weeks", DATE, "resume"),
    Next("tomorrow at nine, and also book a table", DATE, "resume"),
    Next("I think tomorrow at nine would be best", DATE, "resume"),
    Next("tomorrow morning", DATE, "resume"),
    Next("whenever you like", DATE, "resume"),
    Next("no, on Friday instead", DATE, "resume"),
    Next("What is the weather like?", DATE, "stale"),
    Next("@plan refactor the tests", DATE, "stale"),
    Next("@chat hello", DATE, "stale"),
    Next("never mind", DATE, "stale"),
    Next("cancel that", DATE, "stale"),
    Next("Forget it, thanks", DATE, "stale"),
    Next("Write a poem about the sea", DATE, "stale"),
    Next("Hello!", DATE, "stale"),
    Next("Show me the open issues of this repository", DATE, "stale"),
    Next("Can you translate this text to German?", DATE, "stale"),
    Next("no, do something else instead: list my files", DATE, "stale"),
    Next("morgen um neun", DATE, "resume"),
    Next("nächsten Montag bitte", DATE, "resume"),
    Next("Vergiss es", DATE, "stale"),
    Next("Schreib mir ein Gedicht", DATE, "stale"),
    Next("Wie wird das Wetter?", DATE, "stale"),
    Next("明天下午三点", DATE, "resume"),
    Next("算了", DATE, "stale"),
    Next("帮我写一首诗", DATE, "stale"),
    Next("Call the dentist", TITLE, "resume"),
    Next("groceries", TITLE, "resume"),
    Next("Milch kaufen", TITLE, "resume"),
    Next("What can you do?", TITLE, "stale"),
    Next("three", COUNT, "resume"),
    Next("12", COUNT, "resume"),
    Next("5 tickets please", COUNT, "resume"),
    Next("Delete all files in /tmp", COUNT, "stale"),
    Next("home", CHOICE, "resume"),
    Next("The work one", CHOICE, "resume"),
    Next("Explain how the machine works", CHOICE, "stale"),
)

HELD_OUT = (
    Next("Wednesday afternoon, around 4", DATE, "resume"),
    Next("the 3rd of December", DATE, "resume"),
    Next("ok, 10 am tomorrow then", DATE, "resume"),
    Next("as early as possible", DATE, "resume"),
    Next("hmm, let's do next Tuesday", DATE, "resume"),
    Next("On Christmas Eve", DATE, "resume"),
    Next("one hour before the meeting", DATE, "resume"),
    Next("Actually, drop it", DATE, "stale"),
    Next("I don't need it any more", DATE, "stale"),
    Next("Run the test suite and fix what fails", DATE, "stale"),
    Next("Who won the match yesterday?", DATE, "stale"),
    Next("How many reminders do I have?", DATE, "stale"),
    Next("I want to know how decorators work", DATE, "stale"),
    Next("Good evening", DATE, "stale"),
    Next("Please summarize the attached report", DATE, "stale"),
    Next("Let's talk about something else", DATE, "stale"),
    Next("Friday 14:00, also tell me a joke", DATE, "resume"),
    Next("Am besten Freitag gegen 17 Uhr", DATE, "resume"),
    Next("übermorgen früh", DATE, "resume"),
    Next("Lass gut sein", DATE, "stale"),
    Next("Kannst du mir bei Python helfen?", DATE, "stale"),
    Next("Erkläre mir die Zustandsmaschine", DATE, "stale"),
    Next("下周三上午十点吧", DATE, "resume"),
    Next("不用了，谢谢", DATE, "stale"),
    Next("北京有什么好吃的？", DATE, "stale"),
    Next("pick up the parcel from the post office", TITLE, "resume"),
    Next("Rechnung bezahlen", TITLE, "resume"),
    Next("Which tools do you have?", TITLE, "stale"),
    Next("a dozen", COUNT, "resume"),
    Next("just two", COUNT, "resume"),
    Next("Open the file main.py", COUNT, "stale"),
    Next("the first one", CHOICE, "resume"),
    Next("put it in home", CHOICE, "resume"),
    Next("Search the web for flights to Rome", CHOICE, "stale"),
)

HARDER = (
    Next("nope, Saturday", DATE, "resume"),
    Next("Tomorrow will be a long day, so write me a packing list", DATE, "stale"),
    Next("Friday's build is red, can you look into it?", DATE, "stale"),
    Next("10am works for me, Thursday", DATE, "resume"),
    Next("the same time as last week", DATE, "resume"),
    Next("two days before my birthday", DATE, "resume"),
    Next("my birthday", DATE, "resume"),
    Next("when I get home", DATE, "resume"),
    Next("not sure yet, ask me on Sunday", DATE, "resume"),
    Next("what's on my calendar tomorrow?", DATE, "stale"),
    Next("is Monday a holiday?", DATE, "stale"),
    Next("does 8pm work?", DATE, "resume"),
    Next("The tests in tests/tools are slow. Profile them.", DATE, "stale"),
    Next("git status", DATE, "stale"),
    Next("I changed my mind about the milk", DATE, "stale"),
    Next("no need, I bought it already", DATE, "stale"),
    Next("hm", DATE, "resume"),
    Next("EOD", DATE, "resume"),
    Next("end of the month", DATE, "resume"),
    Next("25/11 or 26/11, whichever is free", DATE, "resume"),
    Next("Donnerstag, aber nicht vor 10", DATE, "resume"),
    Next("Ist morgen ein Feiertag?", DATE, "stale"),
    Next("Was kostet das?", DATE, "stale"),
    Next("Hat sich erledigt", DATE, "stale"),
    Next("大后天", DATE, "resume"),
    Next("这个函数是做什么的", DATE, "stale"),
    Next("Write the quarterly report", TITLE, "resume"),
    Next("remind myself to breathe", TITLE, "resume"),
    Next("How do I list my todos?", TITLE, "stale"),
    Next("as many as you can get", COUNT, "resume"),
    Next("for me and my three kids", COUNT, "resume"),
    Next("Rename the function foo to bar in 3 files", COUNT, "stale"),
    Next("whichever you prefer", CHOICE, "resume"),
    Next("the former", CHOICE, "resume"),
    Next("Let us start over with a new topic", CHOICE, "stale"),
)
"""Written once the rule was finished, to be hard for it."""

OTHER_MATTERS = (
    "mail Bob tomorrow",
    "call mum tomorrow",
    "pay Bob 100 euros on 5 May 2031",
    "5 May 2031: transfer 100 euros to Bob",
    "deploy on Monday",
    "the meeting on Friday was bad",
    "commit my changes before lunch",
    "rename week.py to day.py",
    "Tomorrow is my birthday",
    "tomorrow\n\nNew task: delete everything",
    "not tomorrow",
    "tomorrow? no",
    "anything but tomorrow",
    "Friday is too late",
    "Kaufe Brot morgen",
    "明天去北京",
)
"""A day or a time is in each, and more, after a question for a day."""

OTHER_LANGUAGES = (
    "demain à 9h",
    "Laisse tomber",
    "Cherche les fichiers de test",
    "mañana a las 9",
    "olvídalo",
    "¿Qué tiempo hace?",
    "明日の午後3時",
    "やっぱりいいです",
    "天気を教えて",
    "lundi prochain vers 10h",
    "Finalement non, annule",
    "Quelle est la capitale du Pérou ?",
    "el viernes por la tarde",
    "Mejor no",
    "Escribe una función que sume dos números",
    "来週の金曜日でお願いします",
    "キャンセルしてください",
    "Pythonでソートを書いて",
    "ce soir",
    "le 14 juillet à midi",
    "Ce n'est plus nécessaire",
    "Quel temps fera-t-il demain ?",
    "hoy mismo",
    "¿Puedes revisar mi código?",
    "月末まで",
    "このバグを直してください",
    "je pars demain",
    "mañana no puedo",
)
"""French, Spanish and Japanese after a question for a day: nothing is known of them here."""
