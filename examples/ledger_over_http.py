"""Spends over HTTP with nothing but Python's standard library. PAYGO_URL and PAYGO_TOKEN say where and who."""

import json
import os
import sys
import time
import urllib.error
import urllib.request

URL = os.environ.get("PAYGO_URL", "http://127.0.0.1:7460")
TOKEN = os.environ.get("PAYGO_TOKEN") or sys.exit("set PAYGO_TOKEN to a token, an admin's to make the dataset")


def ask(method, path, body=None, tries=5):
    """The answer, as a dict. What gets lost on the way is asked again: ids make that safe."""
    request = urllib.request.Request(
        f"{URL}/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    for attempt in range(tries):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.load(error)
            if error.code not in (429, 503) or attempt == tries - 1:
                sys.exit(f"{problem['code']}: {problem['message']}")
        except urllib.error.URLError:
            if attempt == tries - 1:
                raise
        time.sleep(0.1 * 2**attempt)


def main():
    ask("POST", "datasets", {"name": "clinic", "privacy_unit": "patient", "filter": {"epsilon": "0.5", "delta": "1e-6"}})
    step = {"gaussian": {"noise_multiplier": 20}}
    for week in range(100):
        answer = ask("POST", "datasets/clinic/spend", {"id": f"week-{week}", "mechanism": step})
        if answer["decision"] == "refuse":
            print(f"week {week} is refused: {answer['reason']}; left {answer['remaining']}")
            break
        # Only now draw the noise and release. A repeated admission is no second permission to draw.
        print(f"week {week} is admitted{' as before' if answer['repeated'] else ''}; spent {answer['spent']}")


if __name__ == "__main__":
    main()
