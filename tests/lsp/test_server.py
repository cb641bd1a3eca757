"""The language server, driven over stdin and stdout as an editor does it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client

pytest.importorskip("pygls")

OPTIONS = {"tabSize": 4, "insertSpaces": True}
TEXT = """let HALF = 0.5
predicate scalar(t) = constant(t) and rank(t) == 0
operator Halve<T: float>(x: T[*S]) -> y: T[*S] {
    y[*i] = x[*i] * HALF
}

rewrite halve in algebra   # x * 0.5 = halve(x)
    Mul(x, c) => Halve(x)
    where scalar(c), near(value(c), HALF)
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    made = Client(tmp_path_factory.mktemp("workspace"))
    capabilities = made.start()
    assert {"hoverProvider", "definitionProvider", "renameProvider", "documentFormattingProvider"} <= set(capabilities)
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def uri(client: Client) -> str:
    opened = client.open("mine.smr", TEXT)
    assert client.diagnostics() == []
    return opened


def spots(locations: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return sorted((one["range"]["start"]["line"], one["range"]["start"]["character"]) for one in locations)


def test_messages_follow_the_typing(client: Client) -> None:
    uri = client.open("typing.smr", TEXT)
    assert client.diagnostics() == []
    client.edit(uri, (7, 17), (7, 22), "Hlave")
    (one,) = client.diagnostics()
    assert one["code"] == "SMR0301"
    assert one["range"]["start"] == {"line": 7, "character": 17}
    assert "did you mean `Halve`?" in one["message"]
    client.edit(uri, (7, 22), (7, 22), "(")
    assert [one["code"] for one in client.diagnostics()] == ["SMR0001"]
    client.edit(uri, (7, 17), (7, 23), "Halve")
    assert client.diagnostics() == []
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_hover_tells_signature_class_and_equation(client: Client, uri: str) -> None:
    text = client.at("hover", uri, 7, 18)["contents"]["value"]
    assert "Halve<T: float>(x: T[*S]) -> y: T[*S]" in text
    assert "y[*i] = x[*i] * HALF" in text or "y[*i] = x[*i] * 0.5" in text
    assert "ILI.Variable" in text
    assert "one_to_one" in text
    assert "commutative" not in text
    assert "a[~i] * b[~i]" in client.at("hover", uri, 7, 5)["contents"]["value"]
    assert "Mul(x, c) => Halve(x)" in client.at("hover", uri, 6, 10)["contents"]["value"]
    assert "constant(t) and rank(t) == 0" in client.at("hover", uri, 8, 12)["contents"]["value"]
    assert "all elements" in client.at("hover", uri, 8, 28)["contents"]["value"]
    assert "guards of a rule" in client.at("hover", uri, 8, 6)["contents"]["value"]
    assert client.at("hover", uri, 5, 0) is None


def test_definitions(client: Client, uri: str) -> None:
    assert spots(client.at("definition", uri, 7, 18)) == [(2, 9)]
    assert spots(client.at("definition", uri, 8, 12)) == [(1, 10)]
    assert spots(client.at("definition", uri, 8, 37)) == [(0, 4)]
    assert spots(client.at("definition", uri, 7, 23)) == [(7, 8)]
    (elsewhere,) = client.at("definition", uri, 7, 5)
    assert elsewhere["uri"].endswith("rules/operators/elementwise.smr")


def test_the_members_of_a_family_are_definitions(client: Client) -> None:
    text = "    operator Op<T: float>(x: T[*S]) -> y: T[*S] { y[*i] = f(x[*i]) }\n}\n"
    family = f"for Op, f in (MySin, sin), (MyCos, cos) {{\n{text}"
    uri = client.open("family.smr", f"{family}rewrite even in algebra\n    MyCos(Neg(x)) => MyCos(x)\n")
    assert client.diagnostics() == []
    assert spots(client.at("definition", uri, 4, 6)) == [(0, 28)]
    assert "cos(x[*i])" in client.at("hover", uri, 4, 6)["contents"]["value"]
    edit = client.at("rename", uri, 4, 6, newName="Cosine")
    assert spots(edit["changes"][uri]) == [(0, 28), (4, 4), (4, 21)]


def test_references(client: Client, uri: str) -> None:
    found = client.at("references", uri, 0, 5, context={"includeDeclaration": True})
    assert spots(found) == [(0, 4), (3, 20), (8, 36)]
    found = client.at("references", uri, 7, 8, context={"includeDeclaration": False})
    assert spots(found) == [(7, 23)]


def test_rename_changes_every_place(client: Client, uri: str) -> None:
    edit = client.at("rename", uri, 2, 10, newName="Half")
    assert spots(edit["changes"][uri]) == [(2, 9), (7, 17)]
    edit = client.at("rename", uri, 1, 17, newName="tensor")
    assert spots(edit["changes"][uri]) == [(1, 17), (1, 31), (1, 43)]
    with pytest.raises(RuntimeError, match="upper-case"):
        client.at("rename", uri, 2, 10, newName="half")
    with pytest.raises(RuntimeError, match="no name"):
        client.at("rename", uri, 2, 10, newName="two words")
    with pytest.raises(RuntimeError, match="a word of the rule language"):
        client.at("rename", uri, 1, 17, newName="where")
    assert client.at("rename", uri, 8, 28, newName="other") is None


def test_completion_knows_the_place(client: Client, uri: str) -> None:
    def offered(line: int, column: int) -> set[str]:
        return {one["label"] for one in client.at("completion", uri, line, column)["items"]}

    assert {"operator", "rewrite", "device"} <= offered(5, 0)
    assert {"Mul", "Halve", "scalar", "constant", "where", "HALF"} <= offered(7, 6)
    assert "exp" not in offered(7, 6)
    assert {"exp", "rank", "commutative", "float32"} <= offered(3, 12)
    assert {"algebra", "recognise"} <= offered(6, 17)
    block = client.open("block.smr", "fuse rows for recompute {\n    producer \n    \n}\n")
    client.diagnostics()
    labels = {one["label"] for one in client.at("completion", block, 1, 13)["items"]}
    assert {"pointwise", "window"} <= labels
    assert "width" not in labels
    assert "width" in {one["label"] for one in client.at("completion", block, 2, 4)["items"]}


def test_names_of_a_rule(client: Client) -> None:
    text = "rewrite r in algebra\n    Relu(t) => t\n    let t = Relu(x)\n    \n"
    uri = client.open("names.smr", text)
    client.diagnostics()
    offered = {one["label"]: one.get("detail", "") for one in client.at("completion", uri, 3, 4)["items"]}
    assert "let" in offered
    assert offered["t"] == "names Relu(x)"
    assert "let t = Relu(x)" in client.at("hover", uri, 1, 9)["contents"]["value"]
    assert spots(client.at("definition", uri, 1, 15)) == [(2, 8)]
    assert spots(client.at("references", uri, 2, 8, context={"includeDeclaration": True})) == [(1, 9), (1, 15), (2, 8)]


def test_attributes_are_offered_behind_the_semicolon(client: Client) -> None:
    head = "rewrite soft in algebra\n    "
    uri = client.open("attributes.smr", f"{head}TopK(Softmax(x; axis = 1), k; \n")
    client.diagnostics()

    def offered(line: int, column: int) -> dict[str, str]:
        return {one["label"]: one.get("detail", "") for one in client.at("completion", uri, line, column)["items"]}

    column = len("    TopK(Softmax(x; axis = 1), k; ")
    assert offered(1, column)["largest"] == "largest: int = 1"
    assert offered(1, column)["axis"] == "axis: int = -1"
    assert offered(1, len("    TopK(Softmax(x; ")).keys() == {"axis"}
    assert "axis: int" in offered(1, len("    TopK(Softmax(x; "))["axis"]
    assert {"Mul", "where"} <= offered(1, len("    TopK(Softmax(")).keys()
    assert "shape" in offered(1, len("    TopK(Softmax(x; axis = "))


def test_signatures_are_shown_in_calls(client: Client, uri: str) -> None:
    def shown(text: str) -> Any:
        opened = client.open("calls.smr", f"rewrite some in algebra\n    {text}\n")
        client.diagnostics()
        return client.at("signatureHelp", opened, 1, 4 + len(text))

    (softmax, *_) = shown("Softmax(x; ")["signatures"]
    assert softmax["label"].startswith("Softmax<")
    assert softmax["parameters"][softmax["activeParameter"]]["label"].startswith("axis: int")
    (matmul, *_) = shown("MatMul(Add(x, 1), ")["signatures"]
    assert matmul["label"].startswith("MatMul(")
    assert matmul["activeParameter"] == 1
    near = shown("Mul(x, c) => x where near(value(c), ")["signatures"]
    assert [(one["label"], one["activeParameter"]) for one in near] == [("near(a, b)", 1)]
    (scalar,) = client.at("signatureHelp", uri, 8, len("    where scalar("))["signatures"]
    assert scalar["label"] == "scalar(t)"
    assert shown("Softmax(x; axis = 1) ") is None
    assert client.at("signatureHelp", uri, 2, len("operator Halve<T: float>(")) is None


def test_quick_fixes_edit_or_say_why_not(client: Client) -> None:
    text = "rewrite wrong in algebra\n    Mul(x, c) => Rellu(x)\n    where c == 1\n"
    uri = client.open("fixes.smr", text)
    data = {one["code"]: one["data"]["fix"] for one in client.diagnostics()}
    assert data["SMR0301"]["kind"] == "edit"
    assert data["SMR0314"]["kind"] == "advice"

    def actions(line: int, column: int) -> Any:
        place = {"line": line, "character": column}
        params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        return client.ask("textDocument/codeAction", params)

    (spelling,) = actions(1, 20)
    assert (spelling["title"], spelling["kind"]) == ("did you mean `Relu`?", "quickfix")
    (edit,) = spelling["edit"]["changes"][uri]
    assert (edit["newText"], edit["range"]["start"]["character"]) == ("Relu", 17)
    assert spelling["diagnostics"][0]["code"] == "SMR0301"
    (told,) = actions(2, 10)
    assert "edit" not in told
    assert "the author has to decide" in told["disabled"]["reason"]
    assert actions(0, 0) == []


def test_formatting_and_symbols(client: Client, uri: str) -> None:
    assert client.ask("textDocument/formatting", {"textDocument": {"uri": uri}, "options": OPTIONS}) is None
    rough = client.open("rough.smr", "function  f( a,b )=a+b\n\n\nlet  A=1\n")
    client.diagnostics()
    (edit,) = client.ask("textDocument/formatting", {"textDocument": {"uri": rough}, "options": OPTIONS})
    assert edit["newText"] == "function f(a, b) = a + b\n\nlet A = 1\n"
    symbols = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert [one["name"] for one in symbols] == ["HALF", "scalar", "Halve", "halve"]
    assert symbols[3]["detail"] == "x * 0.5 = halve(x)"


def test_every_edit_of_a_long_file_gives_its_messages(client: Client) -> None:
    head = "rewrite rule_{0} in algebra   # made up\n    Mul(Add(x, {0}), {0}) => Add(Mul(x, {0}), {0})\n"
    rule = f"{head}    where rank(x) > 2\n    explores\n\n"
    uri = client.open("long.smr", "".join(rule.format(number) for number in range(2, 102)))
    assert client.diagnostics() == []
    client.edit(uri, (2, 10), (2, 14), "rnak")
    broken = client.diagnostics()
    assert broken
    assert {one["range"]["start"]["line"] for one in broken} == {2}
    client.edit(uri, (2, 10), (2, 14), "rank")
    assert client.diagnostics() == []


def test_an_import_leads_to_its_file(client: Client, tmp_path: Path) -> None:
    del tmp_path
    (client.folder / "other.smr").write_text("let ONE = 1\n")
    uri = client.open("importing.smr", 'import "other.smr"\nlet TWO = ONE + ONE\n')
    assert client.diagnostics() == []
    (found,) = client.at("definition", uri, 0, 10)
    assert found["uri"].endswith("other.smr")
    (found,) = client.at("definition", uri, 1, 11)
    assert found["uri"].endswith("other.smr")
