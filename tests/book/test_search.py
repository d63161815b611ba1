"""The search that readers get, asked in Node exactly as the page asks it: `search.js` over `search-data.js`."""

import json
import random
import re
from pathlib import Path

import pytest
import yaml

from book import node

ASK = Path(__file__).with_name("ask.cjs")
GLOSSARY = yaml.safe_load((Path(__file__).resolve().parents[2] / "book" / "glossary.yml").read_text(encoding="utf-8"))


def ask(site, queries):
    done = node.run(ASK, site / "_static", input=json.dumps(queries), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def hits(mini):
    return lambda query: ask(mini[1], [query])[0]


def titles(found):
    return [hit["title"] for hit in found]


def test_titles_come_first_after_the_glossary(hits):
    found = hits("残差")
    assert [hit["kind"] for hit in found] == sorted((hit["kind"] for hit in found), key=["term", "section"].index)
    sections = [hit["title"] for hit in found if hit["kind"] == "section"]
    assert sections[:2] == ["8 残差连接", "4.1 层归一化与残差"]


def test_terms_that_a_word_index_loses(hits):
    assert "数值稳定性" in titles(hits("数值稳定性"))
    assert "数值稳定性" in titles(hits("值稳")), "any two neighbours"
    assert "4.1 层归一化与残差" in titles(hits("层归一化"))
    assert "数值稳定性" in titles(hits("交叉熵"))


def test_several_words_must_all_be_there(hits):
    assert titles(hits("交叉熵 切开")) == ["数值稳定性"]
    assert not [hit for hit in hits("交叉熵 鲸鱼") if hit["kind"] == "section"]


def test_formulas_are_found_as_they_look(hits):
    assert "小书" in titles(hits("a2+b2"))


def test_code_and_output_are_found(hits):
    assert "4.1 层归一化与残差" in titles(hits("double"))
    assert "8 残差连接" in titles(hits("from lib.other"))
    assert "ouble" not in json.dumps(titles(hits("ouble"))), "a Latin word is found from its beginning"


def test_case_width_and_spaces_make_no_difference(hits):
    expected = titles(hits("kv cache"))
    assert expected[0] == "键值缓存（KV cache）"
    for query in ("KV Cache", "ＫＶ　ｃａｃｈｅ", "KV-Cache", "  kv   cache "):
        assert titles(hits(query)) == expected


def test_near_misses_are_offered_as_such(hits):
    found = hits("交叉熵从中间被切断")
    assert found and {hit["kind"] for hit in found} == {"similar"}


@pytest.mark.parametrize("query", ["", "   ", "“”", "鲸鱼", "\\", "((", "<script>", "[a-", "𒀀"])
def test_nothing_to_find_is_no_error(hits, query):
    assert hits(query) == []


def test_excerpts_show_the_place(hits):
    hit = next(hit for hit in hits("中间被切开") if hit["title"] == "数值稳定性" or hit["kind"] == "section")
    assert "中间被切开" in hit["text"] and len(hit["text"]) < 100


def test_every_name_of_every_term_finds_its_entry_first(site):
    names = [(name, e["term"]) for e in GLOSSARY for name in (e["term"], e["english"], *e.get("synonyms", ()))]
    owners = {}
    for name, term in names:
        owners.setdefault(name.lower(), set()).add(term)
    for (name, _), found in zip(names, ask(site, [name for name, _ in names])):
        first = [hit["title"].split("（")[0] for hit in found[: len(owners[name.lower()])] if hit["kind"] == "term"]
        assert owners[name.lower()] & set(first), name


def test_any_two_neighbouring_characters_of_a_term_find_it(site):
    pairs = [(e["term"], run[i : i + 2]) for e in GLOSSARY for run in re.findall(r"[\u3400-\u9fff]{2,}", e["term"]) for i in range(len(run) - 1)]
    for (term, pair), found in zip(pairs, ask(site, [pair for _, pair in pairs])):
        assert term in {hit["title"].split("（")[0] for hit in found}, pair


def test_words_from_the_middle_of_sentences(site, search_data):
    """Three, five and eight characters cut at random from the text of every page lead to that very section."""
    rng = random.Random(0)
    wanted = []
    for page in search_data(site)["pages"]:
        for anchor, _, text in rng.sample(page["sections"], min(4, len(page["sections"]))):
            runs = [run for run in re.findall(r"[\u4e00-\u9fff]{3,}", text)]
            for length in (3, 5, 8):
                if long := [run for run in runs if len(run) >= length]:
                    run = rng.choice(long)
                    start = rng.randrange(len(run) - length + 1)
                    wanted.append((page["url"] + (f"#{anchor}" if anchor else ""), run[start : start + length]))
    assert len(wanted) > 10
    for (url, query), found in zip(wanted, ask(site, [query for _, query in wanted])):
        urls = {hit["url"] for hit in found}
        assert url in urls or len(found) == 60, (query, url)


def test_every_hit_leads_somewhere(site, search_data):
    data = search_data(site)
    places = [page["url"] + (f"#{a}" if a else "") for page in data["pages"] for a, _, _ in page["sections"]]
    ids = {}
    for place in [*places, *(url for _, _, url in data["terms"])]:
        name, _, anchor = place.partition("#")
        if name not in ids:
            ids[name] = set(re.findall(r'\bid="([^"]+)"', (site / name).read_text(encoding="utf-8")))
        assert not anchor or anchor in ids[name], place
