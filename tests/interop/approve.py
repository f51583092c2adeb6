"""Consents to a request for access as its owner does in a browser, with the code of the owner's terminal.

Usage: approve.py URL HEADCOUNT [--deny] [--follow]
URL is what the client would have opened in a browser, HEADCOUNT the executable, in the environment of its server. The address
that the browser is sent back to is printed; with --follow it is opened, too, as a client that listens for it wants.
"""
import html
import http.cookiejar
import json
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request


class Stay(urllib.request.HTTPRedirectHandler):
    """Shows where a redirect leads instead of going there."""

    def redirect_request(self, *_):
        return None


def send(browser, request):
    try:
        return browser.open(request, timeout=30)
    except urllib.error.HTTPError as answer:
        return answer


def waiting(headcount, label):
    """The one-time code of the request that the page names."""
    told = subprocess.run([headcount, "grants", "requests", "--json"], check=True, capture_output=True, text=True)
    (found,) = [r for r in json.loads(told.stdout)["requests"] if r["request"] == label]
    return found["code"]


def approve(url, headcount, decision="approve", unticked=()):
    """Opens the page, ticks all but what shall be unticked, sends it: where the answer leads."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(Stay, cookies)
    page = send(browser, url)
    text = page.read().decode()
    if 300 <= page.status < 400:
        return page.headers["location"]
    assert page.status == 200, (page.status, text)
    fields = {name: html.unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', text)}
    for name in ("decision", *unticked):
        del fields[name]
    label = re.search(r"request <code>([0-9a-f]+)</code>", text).group(1)
    fields |= {"decision": decision, "code": waiting(headcount, label)}
    parts = urllib.parse.urlsplit(url)
    action = urllib.parse.urljoin(url, html.unescape(re.search(r'action="([^"]+)"', text).group(1)))
    form = urllib.parse.urlencode(fields).encode()
    # Browsers say so, and the server looks at it.
    answer = send(browser, urllib.request.Request(action, form, {"Origin": f"{parts.scheme}://{parts.netloc}"}))
    assert answer.status == 303, (answer.status, answer.read().decode())
    return answer.headers["location"]


if __name__ == "__main__":
    to = approve(sys.argv[1], sys.argv[2], "deny" if "--deny" in sys.argv else "approve")
    print(to)
    if "--follow" in sys.argv:
        urllib.request.urlopen(to, timeout=30).read()
