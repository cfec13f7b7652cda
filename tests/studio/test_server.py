"""LangGraph's development server on this repository, through its client (FA-02)."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

import httpx
import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from tests.browser import CHROMIUM, opened
from tests.life import Life
from tests.studio.dev_server import ASSISTANT, PLAYED, DevServer
from tests.studio.played import ANY
from tests.studio.thread import ASKED, DONE, PLAN, Thread, command

APPROVE = {"decisions": [{"type": "approve"}]}


def started(thread: Thread, *, by: str = "first") -> tuple[str, Life]:
    """Start a run whose command goes on until it is killed; return its id, and the command's."""
    life = Life(thread.workspace / "life")
    thread.plays(main=[command("exec 3>life; echo up >&3; sleep 60", "long"), DONE])
    run = thread.starts(thread.request(by))
    assert life.said() == b"up\n"
    return run, life


@pytest.mark.long
def test_settings_are_a_form(server: DevServer) -> None:
    """Its schema has the sections, enums, defaults and a description of each setting."""
    schemas: Any = server.client.assistants.get_schemas(ASSISTANT)

    context = schemas["context_schema"]
    assert context["properties"]["mode"]["enum"][0] == "direct_chat"
    assert context["$defs"]["Budgets"]["properties"]["think"]["default"] == 50
    assert set(schemas["input_schema"]["properties"]) >= {"messages", "mode", "workspace"}


@pytest.mark.long
def test_the_first_look_shows_the_machine(thread: Thread) -> None:
    """Without a model: a plan, its review, tools, a failed check, a reflection, and success."""
    asked = {"messages": [{"role": "user", "content": "Make the tests pass"}]}
    nodes = [
        name
        for resumed in ({"input": asked}, {"command": {"resume": APPROVE}})
        for part in thread.client.runs.stream(
            thread.id, ASSISTANT, stream_mode=["updates", "custom"], **resumed
        )
        if part.event == "updates"
        for name in part.data
    ]

    assert nodes[:3] == ["intake", "plan", "__interrupt__"]
    assert [name for name in nodes if name in ("verify", "reflect", "settle")] == [
        *("verify", "verify", "reflect", "verify", "settle"),
    ]
    assert thread.status == "completed"


@pytest.mark.long
def test_a_chat_without_a_model_is_told_how_to_have_one(thread: Thread) -> None:
    """It is no error, and nothing is done."""
    thread.runs(thread.request("Write me a poem"))

    assert "set llm.model" in thread.said[-1]
    assert thread.status == "completed"


def test_a_review_is_answered_in_each_way(thread: Thread) -> None:
    """A wrong answer leaves it open; a rejected plan is made anew, an edited one is carried out."""
    thread.plays(plan=[PLAN, PLAN], main=[DONE])
    thread.runs(thread.request("Do it", mode="plan_exec"))
    schema = thread.question["response_schema"]
    first = thread.question["id"]

    assert "confirm" in schema["discriminator"]["mapping"]
    assert "has the form" in thread.answers({"decision": "perhaps"})
    assert "2 were given" in thread.answers({"decisions": [{"type": "approve"}] * 2})
    assert thread.question["id"] == first
    assert thread.answers({"decisions": [{"type": "reject", "message": "Say more."}]}) == ""
    assert "Say more." in thread.said[-2]
    own = {"name": "plan", "args": {"goal": "Mine", "phases": '[{"title": "My way"}]'}}
    assert thread.answers({"decisions": [{"type": "edit", "edited_action": own}]}) == ""
    assert thread.state["values"]["plan"]["phases"][0]["title"] == "My way"
    assert thread.status == "completed"


@pytest.mark.long
def test_an_approval_is_given_in_the_inbox(thread: Thread) -> None:
    """It shows exactly what will run; an edit is what runs then, without a second question."""
    thread.plays(ASKED, main=[command("touch one", "a"), DONE])
    thread.runs(thread.request("Do it"))
    (request,) = thread.question["value"]["action_requests"]
    edited = {"name": "run_command", "args": {"command": "touch two"}}

    assert request["args"] == {"command": "touch one"}
    assert "touch one" in request["description"]
    assert thread.answers({"decisions": [{"type": "edit", "edited_action": edited}]}) == ""
    assert [path.name for path in thread.workspace.iterdir()] == ["two"]


@pytest.mark.long
def test_a_yes_to_one_call_is_none_to_the_next(thread: Thread) -> None:
    """Sent twice, or from a window that shows what is past, it does not run what nobody saw."""
    calls = [command("touch one", "a"), command("touch two", "b")]
    thread.plays(ASKED, main=[*calls, DONE])
    thread.runs(thread.request("Do it"))
    shown = {"checkpoint_id": thread.state["checkpoint"]["checkpoint_id"]}
    thread.answers(APPROVE)

    again = thread.answers(APPROVE)
    of_a_window = thread.answers(APPROVE, checkpoint=shown)

    assert "does not say which it means" in again
    assert "gone on" in of_a_window
    assert [path.name for path in thread.workspace.iterdir()] == ["one"]
    now = {"checkpoint_id": thread.state["checkpoint"]["checkpoint_id"]}
    assert thread.answers(APPROVE, checkpoint=now) == ""
    assert thread.status == "completed"


@pytest.mark.long
def test_a_reply_that_waited_for_its_turn_answers_nothing_new(thread: Thread) -> None:
    """A double click: both runs are made before the second question is asked."""
    thread.plays(plan=[PLAN, PLAN], main=[DONE])
    thread.runs(thread.request("Do it", mode="plan_exec"))
    reject = {"resume": {"decision": "reject", "feedback": "Again."}}
    first = thread.starts(None, command=reject)
    second = thread.starts(None, command=reject)

    thread.client.runs.join(thread.id, first)
    thread.client.runs.join(thread.id, second)

    assert thread.client.runs.get(thread.id, second)["status"] == "error"
    assert thread.question["value"]["type"] == "spec_review_request"


@pytest.mark.long
def test_a_question_is_answered_in_plain_words(thread: Thread) -> None:
    """A failure that comes again is asked about; text alone is an answer."""
    fault = {"raise": "out of order"}
    helped = DONE | {"expect": ["wait for spring"]}
    thread.plays(main=[fault, fault, helped], recovery=[fault, fault])
    thread.runs(thread.request("Do it"))

    assert thread.question["value"]["type"] == "question"
    assert thread.answers("wait for spring") == ""
    assert thread.status == "completed"


@pytest.mark.long
def test_a_setting_that_can_not_be_is_one_line(thread: Thread) -> None:
    """The run ends with it, and the thread is as it was."""
    said = thread.runs(thread.request("Do it"), context={"budgets": {"think": 0}})

    assert said.startswith("SettingsError: setting 'budgets.think'")
    assert "\n" not in said
    thread.plays(main=[DONE])
    assert thread.runs(thread.request("Do it")) == ""


WEAKER: dict[str, Any] = {
    "sandbox.require": {"sandbox": {"require": "none"}},
    "verification.commands": {"verification": {"commands": ["touch made"]}},
    "llm.model": {"llm": {"model": "openai:x"}},
    "spec_review.enabled": {"spec_review": {"enabled": False}},
    "tools.policy.str_replace_editor": {"tools": {"policy": {"str_replace_editor": "allow"}}},
    "tools.mcp_servers.x": {"tools": {"mcp_servers": {"x": {"command": ["touch", "made"]}}}},
    "budgets.max_steps": {"budgets": {"max_steps": 51}},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by", ["run", "assistant"])
def test_a_client_weakens_nothing(thread: Thread, by: str) -> None:
    """SE-03: what would be weaker than the server's own is refused in a line that names the key."""
    thread.plays(main=[DONE] * len(WEAKER))
    for key, weaker in WEAKER.items():
        if by == "assistant":
            made = thread.client.assistants.create("played", context=weaker)
            thread.assistant, weaker = made["assistant_id"], {}  # noqa: PLW2901
        said = thread.runs(thread.request("Do it"), context=weaker)

        assert said.startswith("SettingsError: a client can only make settings stricter"), key
        assert key in said
    assert thread.state["values"] == {}


@pytest.mark.parametrize("by", ["run", "metadata", "assistant", "edit"])
def test_a_client_chooses_nothing_for_the_next_command(thread: Thread, by: str) -> None:
    """SE-03: `daruma resume` takes model and folder from where commands alone write them."""
    said = {"daruma_model": "scripted:mine.json", "daruma_folder": "/looser"}
    configured: Any = {"configurable": said}
    thread.plays(main=[DONE])
    if by == "assistant":
        own = thread.client.assistants.create("played", metadata=said)
        thread.assistant = own["assistant_id"]
    given: Any = {"run": {"config": configured}, "metadata": {"metadata": said}}.get(by, {})
    assert thread.runs(thread.request("Do it"), context=None, **given) == ""
    if by == "edit":
        at: Any = {**thread.state["checkpoint"], **said}
        thread.client.threads.update_state(thread.id, {"messages": []}, checkpoint=at)

    assert [key for key in thread.state["metadata"] if key.startswith("daruma_")] == []


@pytest.mark.parametrize(
    ("context", "line"),
    [
        ({"budgetz": {"think": 1}, "tools": {}}, "'budgetz'; did you mean 'budgets'?"),
        ({"colour": "red"}, "'colour'; known here: mode, llm"),
    ],
)
def test_an_unknown_section_is_refused(thread: Thread, context: dict[str, Any], line: str) -> None:
    """SE-03: not left out in silence; what `configurable` holds beside settings is its sender's."""
    thread.plays(main=[DONE])
    said = thread.runs(thread.request("Do it"), context=context)

    assert said.startswith(f"SettingsError: unknown setting {line}")
    assert "\n" not in said
    assert thread.runs(thread.request("Do it"), context={}, config={"configurable": context}) == ""


def test_an_edit_that_is_refused_says_why(thread: Thread) -> None:
    """It is the client's error, with our line; nothing has changed."""
    thread.plays(main=[DONE])
    thread.runs(thread.request("Do it"))

    with pytest.raises(UnprocessableEntityError) as refused:
        thread.client.threads.update_state(thread.id, {"plan": "none"})

    assert refused.value.response.json() == {
        "detail": "the state can not be changed so: channel 'plan' takes no such str"
    }
    assert thread.status == "completed"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "items"),
        ("GET", "items?namespace=a&key=k"),
        ("DELETE", "items"),
        ("POST", "items/search"),
        ("POST", "namespaces"),
    ],
)
def test_the_store_is_out_of_reach(server: DevServer, method: str, path: str) -> None:
    """SE-03: what a client wrote there, tasks would recall."""
    item = {"namespace": ["a"], "namespace_prefix": ["a"], "key": "k", "value": {"x": 1}}
    answer = httpx.request(method, f"http://127.0.0.1:{server.port}/store/{path}", json=item)

    assert answer.status_code == 404


def test_a_server_whose_store_is_open_does_not_start(server: DevServer, tmp_path: Path) -> None:
    """SE-03: it says what to write, and where."""
    with pytest.raises(AssertionError, match=r"disable_store.*langgraph\.json"):
        DevServer(server.url, tmp_path, http={"app": "daruma.graph.studio.entry:app"})


@pytest.mark.long
def test_an_assistant_has_settings_of_its_own(thread: Thread) -> None:
    """They hold for its runs, under what the run gives itself."""
    thread.plays(main=[command("touch one", "a"), DONE])
    own = thread.client.assistants.create("played", context={"tools": {"policy": ASKED}})
    asked = thread.request("Do it")

    thread.client.runs.wait(thread.id, own["assistant_id"], input=asked)

    assert thread.question["value"]["type"] == "approval_request"


@pytest.mark.long
def test_a_run_without_a_thread_is_a_run(thread: Thread) -> None:
    """It remembers nothing, and ends as any other."""
    thread.server.plays(ANY, main=[DONE])

    ended: Any = thread.client.runs.wait(None, PLAYED, input=thread.request("Do it"))

    assert ended["result"]["status"] == "completed"


@pytest.mark.long
def test_many_runs_without_a_thread_all_answer(server: DevServer, thread: Thread) -> None:
    """Each is deleted as it ends, and no other with it."""
    server.plays(ANY, main=[{"say": "Yes."}])
    request = thread.request("Are you there?", mode="react", workspace=None)
    made = server.client.runs

    def answer(_: int) -> Any:
        return made.wait(None, PLAYED, input=request)

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(answer, range(16))]

    assert [each["result"]["status"] for each in answers] == ["completed"] * 16
    assert server.client.threads.get(thread.id)["thread_id"] == thread.id


@pytest.mark.long
def test_a_cancelled_run_is_gone_on_with(thread: Thread) -> None:
    """Its command is dead by then, and its thread is free."""
    run, life = started(thread)

    thread.client.runs.cancel(thread.id, run, wait=True)

    assert life.said() == b""
    assert thread.client.runs.get(thread.id, run)["status"] == "interrupted"
    assert thread.state["next"] == ["tool"]
    script = [command("exec 3>life; echo up >&3; sleep 60", "long"), DONE]
    thread.plays({"run_command": "deny"}, main=script)
    assert thread.runs() == ""
    assert thread.status == "completed"


@pytest.mark.long
def test_a_run_that_is_taken_back_leaves_nothing(thread: Thread) -> None:
    """Neither its command nor a checkpoint."""
    run, life = started(thread)

    thread.client.runs.cancel(thread.id, run, wait=True, action="rollback")

    assert life.said() == b""
    with pytest.raises(NotFoundError):
        thread.client.runs.get(thread.id, run)
    assert thread.state["values"] == {}


@pytest.mark.long
def test_a_second_run_can_be_refused(thread: Thread) -> None:
    """The first goes on."""
    run, life = started(thread)

    with pytest.raises(ConflictError):
        thread.starts(thread.request("second"), multitask_strategy="reject")
    assert thread.client.runs.get(thread.id, run)["status"] == "running"
    thread.client.runs.cancel(thread.id, run, wait=True)
    assert life.said() == b""


@pytest.mark.long
def test_a_second_run_waits(thread: Thread) -> None:
    """Both are done, one after the other."""
    thread.plays(main=[command("sleep 0.3", "a"), DONE, {"say": "And the second."}])
    first = thread.starts(thread.request("first"))
    second = thread.starts(thread.request("second"), multitask_strategy="enqueue")

    thread.client.runs.join(thread.id, second)

    assert thread.client.runs.get(thread.id, first)["status"] == "success"
    assert thread.said[-1] == "And the second."


@pytest.mark.long
def test_a_terminal_speaks_to_the_run_at_work(thread: Thread) -> None:
    """FA-14: where a second run would only wait, `daruma tell` reaches the first one's model."""
    life = Life(thread.workspace / "life")
    waits = command(
        "exec 3>life; echo up >&3; exec 3>&-; until [ -e go ]; do sleep 0.02; done", "a"
    )
    thread.plays(main=[waits, DONE])
    run = thread.starts(thread.request("first"))
    assert life.said() == b"up\n"

    told = [sys.executable, "-m", "daruma", "tell", thread.id, "Mind the gap."]
    url = {"DARUMA_POSTGRES_URL": thread.server.url}
    subprocess.run(told, check=True, env={**os.environ, **url})
    (thread.workspace / "go").touch()
    thread.client.runs.join(thread.id, run)

    assert thread.status == "completed"
    assert thread.said[-2:] == ["Mind the gap.", "It is done."]


@pytest.mark.long
@pytest.mark.parametrize(("strategy", "kept"), [("interrupt", True), ("rollback", False)])
def test_a_second_run_takes_the_place_of_the_first(
    thread: Thread, strategy: Any, kept: Any
) -> None:
    """Its command is killed; what had come of it is told, or taken back, and the second is done."""
    _, life = started(thread)
    thread.plays(main=[DONE, DONE])
    second = thread.starts(thread.request("second"), multitask_strategy=strategy)

    thread.client.runs.join(thread.id, second)

    assert life.said() == b""
    assert thread.status == "completed"
    assert any("Cut short" in text for text in thread.said) is kept
    assert thread.said[-2:] == ["second", "It is done."]


@pytest.mark.long
def test_a_thread_is_looked_at_copied_forked_and_deleted(thread: Thread) -> None:
    """Its history is there; from an earlier checkpoint another task can be made of it."""
    thread.plays(main=[{"say": "One."}, {"say": "Two."}])
    thread.runs(thread.request("first"))
    threads = thread.client.threads
    history = threads.get_history(thread.id, limit=50)
    earlier = next(each for each in history if "main" in each["next"])

    copied = cast("Any", thread.client.http.post(f"/threads/{thread.id}/copy", json=None))
    fork: Any = threads.update_state(thread.id, None, checkpoint=earlier["checkpoint"])
    thread.runs(checkpoint=fork["checkpoint"])

    assert thread.status == "completed"
    assert len(threads.get_history(thread.id, limit=50)) > len(history)
    copy: Any = threads.get_state(copied["thread_id"])
    assert copy["values"]["result"]["status"] == "completed"
    threads.delete(thread.id)
    with pytest.raises(NotFoundError):
        threads.get(thread.id)


@pytest.mark.long
def test_a_killed_server_goes_on_when_it_is_back(server: DevServer, thread: Thread) -> None:
    """What was asked is still asked, and what is answered is carried out."""
    thread.plays(plan=[PLAN], main=[DONE])
    thread.runs(thread.request("Do it", mode="plan_exec"))
    asked = thread.question["id"]
    server.kill()
    server.start()
    thread.client.threads.create(thread_id=thread.id, graph_id="daruma", if_exists="do_nothing")

    assert thread.question["id"] == asked
    assert thread.answers({"decision": "confirm"}) == ""
    assert thread.status == "completed"


# --- Who may call it (SE-03): not the page that somebody happens to look at meanwhile.


def stands_for(name: str) -> str:
    """Return a thread's id, the same for the same name."""
    return str(uuid5(NAMESPACE_URL, name))


def was_made(server: DevServer, name: str) -> bool:
    """Whether a request has made the thread of that name."""
    try:
        server.client.threads.get(stands_for(name))
    except NotFoundError:
        return False
    return True


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example", "content-type": "application/json"},
    {"origin": "https://evil.example", "content-type": "text/plain"},
    {"origin": "null", "content-type": "text/plain"},
    {"host": "evil.example:2024", "content-type": "application/json"},
]


def test_a_page_of_another_origin_starts_nothing(server: DevServer) -> None:
    """Also without a preflight, as text, and under a name of its own that leads here."""
    url, answers = f"http://127.0.0.1:{server.port}/threads", []
    for number, headers in enumerate([*FOREIGN, {"origin": "https://smith.langchain.com"}, {}]):
        content = json.dumps({"thread_id": stands_for(f"foreign {number}")})
        answers.append(httpx.post(url, content=content, headers=headers))
        asked = {"access-control-request-method": "POST"}
        answers.append(httpx.options(url, headers=headers | asked))

    assert [each.status_code for each in answers[:8]] == [403] * 8
    assert answers[8].status_code == answers[9].status_code == answers[10].status_code == 200
    assert answers[9].headers["access-control-allow-origin"] == "https://smith.langchain.com"
    assert [was_made(server, f"foreign {n}") for n in range(6)] == [False] * 4 + [True] * 2


TRIES = """
const body = name => JSON.stringify({thread_id: IDS[name]});
const post = (name, url, options) =>
    fetch(url, {method: "POST", body: body(name), ...options}).catch(() => null);
const json = {headers: {"content-type": "application/json"}};
const form = document.createElement("form");
form.method = "POST"; form.enctype = "text/plain"; form.target = "frame";
form.action = SERVER;
const field = document.createElement("input");
field.name = body("form").slice(0, -1) + ', "x": "'; field.value = '"}';
form.append(field);
const frame = document.createElement("iframe");
frame.name = "frame";
document.body.append(frame, form);
form.submit();
navigator.sendBeacon(SERVER, body("beacon"));
window.tried = Promise.all([
    post("json", SERVER, json),
    post("text", SERVER, {mode: "no-cors"}),
    post("rebound", REBOUND, json),
    new Promise(done => { frame.onload = () => setTimeout(done, 300); }),
]).then(() => "done");
"""
NAMES = ("json", "text", "form", "beacon", "rebound")


@pytest.mark.sampled(1)
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
@pytest.mark.parametrize("host", ["evil.example", "localhost"])
def test_a_browser_on_another_page_starts_nothing(
    server: DevServer, tmp_path: Path, host: str
) -> None:
    """A real one, with all that a page can send; of a page that may call, the same comes in."""
    with served(tmp_path) as port:
        page = f"{host}:{port}" if host == "localhost" else host
        ids = {name: stands_for(f"{host} {name}") for name in NAMES}
        told = {
            "IDS": ids,
            "SERVER": f"http://127.0.0.1:{server.port}/threads",
            "REBOUND": "http://rebound.example/threads",
        }
        lines = "".join(f"const {name} = {json.dumps(value)};" for name, value in told.items())
        (tmp_path / "page.html").write_text(f"<body><script>{lines}{TRIES}</script>")
        rules = (
            f"MAP evil.example 127.0.0.1:{port}, MAP rebound.example 127.0.0.1:{server.port}, "
            "EXCLUDE 127.0.0.1, EXCLUDE localhost"
        )
        with opened(rules=rules) as tab:
            tab.open(f"http://{page}/page.html")
            tab.do("Runtime.evaluate", expression="window.tried", awaitPromise=True)

    made = {name for name in NAMES if was_made(server, f"{host} {name}")}
    assert made == ({"json", "text", "beacon", "form"} if host == "localhost" else set())


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Serve a folder's pages; yield the port."""
    handler = partial(QuietPages, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        serving = threading.Thread(target=pages.serve_forever)
        serving.start()
        yield pages.server_port
        pages.shutdown()
        serving.join()


class QuietPages(SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_: Any) -> None:
        """Keep it."""


@pytest.mark.long
def test_nothing_has_blocked_the_server(server: DevServer) -> None:
    """Of all that was done above: neither files, nor commands, nor the database; it ends well."""
    code = server.stop()
    server.start()  # for tests that another worker hands over

    assert "Blocking call" not in server.log
    assert code in (0, -2, 130)
