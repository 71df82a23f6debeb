//! The dashboard in a real browser: log in, create, spend until refused, see it live, ask what-if; on a phone, in the dark, by keyboard.

mod common;

use common::{Served, rho};
use paygo_ledger::entry::Role;
use paygo_testkit::browser::{Browser, keys};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Where pictures are kept.
fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard").join(format!("{name}.png"))
}

fn log_in(browser: &Browser, served: &Served, token: &str) {
    browser.open(&served.url("/login"));
    browser.fill("#token", token);
    browser.press(keys::ENTER);
    browser.sees("h1", "Datasets");
}

#[test]
fn from_log_in_to_refusal() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    browser.open(&served.url("/datasets/sales"));
    browser.sees("h1", "Log in");
    browser.fill("#token", "paygo_wrong");
    browser.press(keys::ENTER);
    browser.sees("[role=alert]", "wrong, revoked or expired");
    log_in(&browser, &served, &admin);
    browser.sees("main", "There are no datasets yet");

    a_dataset_is_created(&browser, &served);
    what_if_answers_as_the_ledger(&browser, &served, &admin);
    let most = spent_until_refused(&browser, &served, &admin);
    others_are_seen_live(&browser, &served, &admin, most);
    a_token_is_granted_and_revoked(&browser, &served);

    // The complaints are the answers 4xx that were asked for; none is about a policy, a script or a file.
    let others: Vec<String> = browser.complaints().into_iter().filter(|text| !text.contains("status of 4")).collect();
    assert!(others.is_empty(), "{others:?}");
    browser.click("header button");
    browser.sees("h1", "Log in");
    browser.open(&served.url("/"));
    browser.sees("h1", "Log in");
}

fn a_dataset_is_created(browser: &Browser, served: &Served) {
    browser.click("a[href='/new']");
    browser.fill("#name", "sales");
    browser.fill("#privacy_unit", "customer");
    browser.fill("#epsilon", "3");
    browser.click("form[data-form=create] button");
    browser.sees("h1", "sales");
    browser.sees("#tiles", "0 %");
    assert_eq!(browser.url(), served.url("/datasets/sales"));
}

fn what_if_answers_as_the_ledger(browser: &Browser, served: &Served, admin: &str) {
    browser.click("#ask button[value=what-if]");
    browser.sees("#answer", "Yes: it would be admitted now.");
    let step = json!({"poisson_sampled_gaussian": {"sampling_probability": "0.004", "noise_multiplier": "1.1"}});
    let asked = json!({"mechanism": {"repeat": {"count": "15000", "of": step}}});
    let told = served.post(admin, "/v1/datasets/sales/what-if", &asked);
    assert_eq!(told["decision"], "admit");
    browser.sees("#answer", &format!("fit now: {}.", told["largest_count"]));
    browser.sees("#answer", "Nothing was charged.");
    assert_eq!(browser.text("#admitted"), "0");
    browser.fill("#noise", "0.5");
    browser.click("#ask button[value=what-if]");
    browser.sees("#answer", "No: it would be refused now.");
    browser.sees("#answer", "the total would pass the budget");
}

/// As often as was foretold.
fn spent_until_refused(browser: &Browser, served: &Served, admin: &str) -> u64 {
    browser.choose("#what", "something");
    browser.fill("#epsilon", "0.7");
    browser.click("#ask button[value=what-if]");
    let told = served.post(admin, "/v1/datasets/sales/what-if", &json!({"mechanism": {"pure": {"epsilon": "0.7"}}}));
    let most = told["largest_count"].as_u64().expect("a count");
    assert!((3..20).contains(&most), "{told}");
    browser.sees("#answer", &format!("fit now: {most}."));
    browser.fill("#note", "a test <b>");
    for spent in 1..=most {
        browser.click("#ask button[value=spend]");
        browser.sees("#admitted", &spent.to_string());
        browser.sees("#answer", "Admitted.");
    }
    browser.click("#ask button[value=spend]");
    browser.sees("#answer", "Refused.");
    browser.sees("#refused", "1");
    browser.sees("#decisions", "refused");
    browser.sees("#decisions", "a test <b>");
    browser.sees("#decisions", "pure, epsilon 0.7");
    assert_eq!(served.get(admin, "/v1/datasets/sales")["admitted"], most);
    browser.sees("#spent-share", " %");
    browser.picture(&picture("dataset"));
    most
}

/// Somebody else spends, and it is seen without a reload; what is being typed stays.
fn others_are_seen_live(browser: &Browser, served: &Served, admin: &str, admitted: u64) {
    let _ = browser.script("window.notReloaded = true");
    browser.fill("#note", "still typing");
    let ann = served.token("ann", Role::Spender, None);
    served.post(&ann, "/v1/datasets/sales/spend", &json!({"id": "q1", "mechanism": {"pure": {"epsilon": "0.01"}}}));
    browser.sees("#admitted", &(admitted + 1).to_string());
    browser.sees("#shares", "ann");
    served.post(admin, "/v1/datasets/sales/close", &Value::Null);
    browser.sees("h1", "closed");
    let kept = browser.script("return [window.notReloaded, document.querySelector('#note').value]");
    assert_eq!(kept, json!([true, "still typing"]));
    browser.click("#ask button[value=spend]");
    browser.sees("#answer", "dataset sales is closed");
}

fn a_token_is_granted_and_revoked(browser: &Browser, served: &Served) {
    browser.click("a[href='/tokens']");
    browser.fill("#holder", "bob");
    browser.fill("#datasets", "sales");
    browser.click("form[data-form=grant] button");
    browser.sees("#answer", "shown this once");
    let token = browser.text("#answer").lines().last().expect("a token").to_owned();
    assert_eq!(served.get(&token, "/v1/me")["holder"], "bob");
    let hash = paygo_ledger::entry::Digest::of(&token);
    browser.click(&format!("[data-revoke='{hash}']"));
    browser.sees("#answer", "is revoked");
    served.json(&token, "GET", "/v1/me", &Value::Null, 401);
}

/// Light and dark, on a desk and on a phone: nothing is wider than the screen, text stands out, everything has a name.
#[test]
fn everybody_can_read_it() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    let days: Vec<String> = (1..=60).map(|day| format!("day-{day:02}")).collect();
    let new = json!({"name": "events", "filter": {"kind": "zcdp", "rho": 1}, "blocks": days});
    served.post(&admin, "/v1/datasets", &new);
    for day in 1..=60 {
        let body = json!({"id": day.to_string(), "mechanism": rho(&format!("{}", f64::from(day) / 60.0)), "blocks": [format!("day-{day:02}")]});
        served.post(&admin, "/v1/datasets/events/spend", &body);
    }
    served.post(&admin, "/v1/datasets/events/allowances", &json!({"name": "ads", "members": ["ann", "bob"], "rho": 1}));
    let hold = json!({"id": "run", "mechanism": {"repeat": {"count": 5, "of": rho("0.01")}}});
    served.post(&admin, "/v1/datasets/sales/reserve", &hold);
    log_in(&browser, &served, &admin);
    for (width, height, dark, screen) in [
        (1200, 900, false, "light"),
        (1200, 900, true, "dark"),
        (390, 844, false, "phone"),
        (390, 844, true, "phone-dark"),
    ] {
        browser.screen(width, height, dark);
        for (path, name) in [
            ("/", "datasets"),
            ("/datasets/sales", "sales"),
            ("/datasets/events", "blocks"),
            ("/new", "new"),
            ("/tokens", "tokens"),
        ] {
            browser.open(&served.url(path));
            browser.eventually("the page", |browser| browser.script("return document.readyState") == "complete");
            browser.picture(&picture(&format!("{name}-{screen}")));
            let told = format!("{path} {screen}");
            let wide =
                browser.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{told}: {wide} too wide");
            let faint = browser.script(FAINT);
            assert_eq!(faint, json!([]), "{told}: text that does not stand out");
            let nameless = browser.script(NAMELESS);
            assert_eq!(nameless, json!([]), "{told}: what has no name");
        }
    }
    // The heat map tells by words too.
    browser.screen(1200, 900, false);
    browser.open(&served.url("/datasets/events"));
    assert_eq!(browser.script("return document.querySelectorAll('.heat li').length"), 60);
    let shades = browser.script("return new Set([...document.querySelectorAll('.heat li')].map(li => getComputedStyle(li).backgroundColor)).size");
    assert_eq!(shades, 5, "from nearly empty to full");
    let _ = browser.script("document.querySelector('.heat li:last-child').focus()");
    browser.sees(".heat li:last-child span", "day-60: 100 % spent");
    assert!(browser.complaints().is_empty());
}

/// Text whose contrast with what is behind it is below 4.5.
const FAINT: &str = "
const parts = (color) => color.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => { const f = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
const shown = (e) => e.getClientRects().length && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
return [...document.querySelectorAll('body *')].filter(shown).filter((e) => !e.closest('svg') && !e.disabled).map((e) => {
  const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), e.tagName + ' ' + e.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5);";

/// Fields, buttons, links and pictures without a name, and pages without one heading or a language.
const NAMELESS: &str = "
const wrong = [];
for (const e of document.querySelectorAll('input, select, textarea')) if (!e.hidden && !(e.labels && e.labels.length)) wrong.push(e.outerHTML);
for (const e of document.querySelectorAll('button, a, th')) if (!e.textContent.trim() && !e.matches('thead th')) wrong.push(e.outerHTML);
for (const e of document.querySelectorAll('svg')) if (!e.getAttribute('aria-label') && e.getAttribute('aria-hidden') !== 'true') wrong.push(e.outerHTML.slice(0, 80));
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
for (const id of ids) if (ids.filter((other) => other === id).length > 1) wrong.push('id twice: ' + id);
if (document.querySelectorAll('h1').length !== 1) wrong.push('headings');
if (!document.documentElement.lang || !document.title) wrong.push('language or title');
if (!document.querySelector('main')) wrong.push('main');
return wrong;";

#[test]
fn by_keyboard_alone() {
    let Some(browser) = Browser::start() else { return };
    let served = Served::new();
    let admin = served.token("root", Role::Admin, None);
    served.create(&admin, "sales", "1");
    log_in(&browser, &served, &admin);
    let focused = "const e = document.activeElement; return e.id || e.textContent.trim() || e.tagName";
    browser.press(keys::TAB);
    assert_eq!(browser.script(focused), "Skip to the content");
    browser.press(keys::ENTER);
    let outline = "return getComputedStyle(document.activeElement).outlineStyle";
    browser.press(keys::TAB);
    assert_eq!(
        (browser.script(focused), browser.script(outline)),
        (json!("sales"), json!("solid")),
        "what has the focus is seen"
    );
    browser.press(keys::ENTER);
    browser.sees("h1", "sales");
    for _ in 0..40 {
        if browser.script(focused) == "noise" {
            break;
        }
        browser.press(keys::TAB);
    }
    assert_eq!(browser.script(focused), "noise", "reached by tab");
    browser.press(keys::ENTER);
    browser.sees("#answer", "now.");
    let roles = browser.script("return [document.querySelector('#answer').getAttribute('role'), document.querySelector('#live-state').getAttribute('role')]");
    assert_eq!(roles, json!(["status", "status"]), "answers are read out");
}
