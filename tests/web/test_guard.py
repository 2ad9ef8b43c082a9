"""Host, origin, type and size of a request are checked before its route."""

import pytest


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "example.com"}, 400),
        ({"Host": "user@localhost"}, 400),
        ({"Host": "localhost:x"}, 400),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Origin": "https://example.com"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_hosts_and_pages_are_refused(server, headers, status):
    assert server.post("/embed", json={"text": "a"}, headers=headers).status_code == status


def test_the_own_page_may_ask(server):
    own = str(server.base_url).rstrip("/")
    assert server.post("/embed", json={"text": "a"}, headers={"Origin": own}).status_code == 200


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        ("text=a", "application/x-www-form-urlencoded", 415),
        ('{"text": "a"}', "text/plain", 415),
        ('{"text": "a"}', "application/json; charset=utf-8", 200),
        ("[", "application/json", 422),
        ("[" * 100_000, "application/json", 400),
        (b"\xff", "application/json", 400),
        ('{"text": "' + "a" * (1 << 20) + '"}', "application/json", 413),
    ],
    ids=range(7),
)
def test_only_json_of_limited_size_is_read(server, content, kind, status):
    answer = server.post("/embed", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["code"] == status


def test_no_page_of_another_site_gets_permission(server):
    headers = {"Origin": "https://example.com", "Access-Control-Request-Method": "POST"}
    answer = server.options("/embed", headers=headers)
    assert answer.status_code == 403
    assert not any("access-control" in name for name in answer.headers)


def test_every_answer_forbids_foreign_content(server):
    for answer in (server.get("/"), server.get("/health"), server.get("/nothing"), server.post("/embed", json={})):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
