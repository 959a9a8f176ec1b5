"""The site: complete, and made of nothing from elsewhere. `make docs` itself checks links and anchors."""

import os
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

# Attributes by which a browser fetches something by itself; a link, which somebody clicks, is not among them.
FETCHING = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
    "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",), "link": ("href",),
}  # fmt: skip


class Fetched(HTMLParser):
    """Collects the addresses that a page fetches, and its policy."""

    def __init__(self):
        super().__init__()
        self.addresses, self.policy = [], ""

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[name] or "" for name in FETCHING.get(tag, ()) if name in found]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]


def is_elsewhere(address):
    return bool(re.match(r"\s*(\w+:)?//", address))


@pytest.fixture(scope="module")
def site(project):
    """The built site."""
    folder = project / "site"
    if not (folder / "index.html").exists():
        if os.environ.get("CI"):
            pytest.fail("there is no site/; .ci/run makes it")
        pytest.skip("there is no site/: `make docs` makes it")
    return folder


@pytest.fixture(scope="module")
def pages(project):
    return sorted((project / "docs").glob("*.md"))


def named(nav):
    for item in nav:
        for value in item.values():
            yield from named(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation_once(project, pages):
    settings = tomllib.loads((project / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(named(settings["nav"])) == [page.name for page in pages]


def test_pages_link_to_nothing_that_the_site_does_not_have(project, pages):
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            assert is_elsewhere(target) or (page.parent / target).is_file(), f"{page.name}: {target}"
            assert ".." not in Path(target).parts, f"{page.name}: {target} leads out of the site"
        # The theme would fetch what draws it.
        assert "```mermaid" not in text, page.name


def test_no_page_fetches_anything_from_elsewhere(site, pages):
    built = sorted(site.rglob("*.html"))
    assert len(built) > len(pages)
    for page in built:
        found = Fetched()
        found.feed(page.read_text(encoding="utf-8"))
        assert found.addresses, page
        assert [each for each in found.addresses if is_elsewhere(each)] == [], page
        # What a script of the theme might fetch later, the browser refuses.
        assert found.policy.startswith("default-src 'self' "), page
        assert "http" not in found.policy, page


def test_no_style_fetches_anything_from_elsewhere(site):
    styles = sorted(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text(encoding="utf-8")
        addresses = re.findall(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", text)
        assert [each for pair in addresses for each in pair if is_elsewhere(each)] == [], style


def test_an_address_elsewhere_is_noticed():
    found = Fetched()
    found.feed(
        '<link href="https://x.test/a.css"><script src="//x.test/a.js"></script><a href="http://x.test">x</a>'
    )
    assert [is_elsewhere(each) for each in found.addresses] == [True, True]
    assert not is_elsewhere("./assets/a.css")
