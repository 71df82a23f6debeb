// Keeps pages up to date and lets forms ask the API. Nothing here decides anything.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// The parts of a page that are alive are fetched again when something has changed.
async function refresh() {
  const answer = await fetch(location.href, { headers: { "X-Paygo": "1" } });
  if (answer.redirected) return location.reload();
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of $$("[data-live]")) {
    const next = fresh.getElementById(part.id);
    if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(next);
  }
}

function follow() {
  const state = $("#live-state");
  const events = new EventSource("/events");
  let due = false;
  events.addEventListener("change", () => {
    if (due) return;
    due = true;
    setTimeout(() => { due = false; refresh().catch(() => {}); }, 50);
  });
  events.onopen = () => { if (state.textContent) refresh().catch(() => {}); state.textContent = ""; };
  events.onerror = () => { state.textContent = "not live: connecting again…"; };
}

async function ask(method, path, body) {
  const headers = { "X-Paygo": "1", "Content-Type": "application/json" };
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.message ?? `the service answered ${answer.status}`);
  return said;
}

function tell(text, how = "") {
  const output = $("#answer");
  output.className = `answer ${how}`;
  output.textContent = text;
}

const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);

// Six digits, on the side that promises less: up for what is spent, down for what is left.
function shown(number, up) {
  if (typeof number !== "number" || number === 0) return String(number);
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(number))) - 5);
  const rounded = Number(number.toPrecision(6));
  if (up ? rounded >= number : rounded <= number) return String(rounded);
  return String(Number((number + (up ? unit : -unit) / 2).toPrecision(6)));
}
const symbols = { epsilon: "ε", delta: "δ", rho: "ρ", mu: "μ" };
const amounts = (meters, up) => Object.entries(meters).map(([name, x]) => `${symbols[name] ?? name} ${shown(x, up)}`).join(", ");

function account(name) {
  if (typeof name === "string") return name;
  return Object.entries(name).map(([kind, which]) => `${kind} ${which}`).join("");
}

// What the form describes, in the words of the API. Numbers go as text, so that they mean what was typed.
function mechanism(form) {
  const field = (name) => form.elements[name].value.trim();
  const times = (count, of) => (String(count) === "1" ? of : { repeat: { count: String(count), of } });
  switch (field("what")) {
    case "training": {
      const [q, epochs] = [Number(field("sampling")), Number(field("epochs"))];
      if (!(q > 0 && q <= 1 && epochs > 0)) throw new Error("expected 0 < q ≤ 1 and a number of epochs");
      const step = { poisson_sampled_gaussian: { sampling_probability: field("sampling"), noise_multiplier: field("noise") } };
      // A hair less before rounding up: 60 epochs at q = 0.004 are 15000 steps, not 15001.
      return times(Math.max(1, Math.ceil((epochs / q) * (1 - 1e-12))), step);
    }
    case "gaussian": return times(field("count"), { gaussian: { noise_multiplier: field("noise") } });
    case "laplace": return times(field("count"), { laplace: { scale: field("scale") } });
    case "pure": return times(field("count"), { pure: { epsilon: field("epsilon") } });
    default:
      try { return JSON.parse(field("mechanism")); } catch (error) { throw new Error(`the mechanism is not JSON: ${error.message}`); }
  }
}

function explain(answer, asked, earnest) {
  const yes = answer.decision === "admit";
  const words = earnest ? (yes ? "Admitted" : "Refused") : (yes ? "Yes: it would be admitted now" : "No: it would be refused now");
  const lines = [answer.repeated ? `${words}, as before; it was charged once.` : `${words}.`];
  if (answer.reason) lines.push(`Why: ${answer.reason} (${account(answer.account)}).`);
  if (answer.requested) lines.push(`It alone costs ${amounts(answer.requested, true)}.`);
  lines.push(`Spent ${amounts(answer.spent, true)}, left ${amounts(answer.remaining, false)} (${account(answer.account)}).`);
  if (answer.after && yes) lines.push(`With it, ${amounts(answer.after, true)} would be spent.`);
  if (answer.largest_count !== undefined) {
    const most = answer.largest_count >= 2 ** 40 ? "as many as you like" : String(answer.largest_count);
    const what = asked.repeat ? `of these ${asked.repeat.count} steps, or more,` : "of the same";
    lines.push(`How many ${what} ${earnest ? "would have fit" : "would fit now"}: ${most}.`);
  }
  if (earnest) lines.push(`Entry ${answer.entry}, receipt ${answer.receipt}.`); else lines.push("Nothing was charged.");
  tell(lines.join("\n"), yes ? "yes" : "no");
}

const forms = {
  async ask(form, verb) {
    const dataset = form.dataset.dataset;
    const request = { mechanism: mechanism(form) };
    const blocks = form.elements.blocks?.value.trim();
    if (blocks) request.blocks = blocks === "all" ? "all" : names(blocks);
    if (verb === "spend") {
      const id = form.elements.id.value.trim();
      if (!id) { form.elements.id.focus(); throw new Error("an id is needed: made by you, and kept"); }
      request.id = id;
      if (form.elements.note.value.trim()) request.note = form.elements.note.value.trim();
    }
    explain(await ask("POST", `/v1/datasets/${dataset}/${verb}`, request), request.mechanism, verb === "spend");
    // Answered: what comes next is another request. Without an answer the id stays, and a retry is charged once.
    if (verb === "spend") suggest();
  },
  async create(form) {
    const field = (name) => form.elements[name].value.trim();
    const filter = { kind: field("kind"), epsilon: field("epsilon") };
    if (field("kind") !== "pure") filter.delta = field("delta");
    const dataset = { name: field("name"), privacy_unit: field("privacy_unit"), neighbors: field("neighbors"), filter };
    if (field("blocks")) dataset.blocks = names(field("blocks"));
    await ask("POST", "/v1/datasets", dataset);
    location.assign(`/datasets/${dataset.name}`);
  },
  async grant(form) {
    const field = (name) => form.elements[name].value.trim();
    const token = { holder: field("holder"), role: field("role") };
    if (field("datasets")) token.datasets = names(field("datasets"));
    if (field("expires_in_days")) token.expires_in_days = Number(field("expires_in_days"));
    const granted = await ask("POST", "/v1/tokens", token);
    tell(`The token of ${token.holder}, shown this once:\n${granted.token}`, "yes");
  },
};

async function busy(form, work) {
  const buttons = $$("button", form);
  buttons.forEach((button) => { button.disabled = true; });
  try { await work(); } catch (error) { tell(error.message, "no"); } finally { buttons.forEach((button) => { button.disabled = false; }); }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const send = forms[form.dataset.form];
  if (!send) return;
  event.preventDefault();
  busy(form, () => send(form, event.submitter?.value || "what-if"));
});

document.addEventListener("click", (event) => {
  const hash = event.target.closest?.("[data-revoke]")?.dataset.revoke;
  if (!hash || !confirm(`${event.target.textContent}? Whoever holds it can do nothing any more.`)) return;
  ask("DELETE", `/v1/tokens/${hash}`).then(() => tell("The token is revoked.", "yes"), (error) => tell(error.message, "no"));
});

// An id that nobody has used.
function suggest() {
  const field = $("#request-id");
  if (field) field.value = `web-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
}

// Only the fields of what is asked for.
function fit() {
  const what = $("#what")?.value;
  for (const field of $$("[data-for]")) field.hidden = !field.dataset.for.split(" ").includes(what);
}
$("#what")?.addEventListener("change", fit);
fit();
suggest();
if ($("[data-live]")) follow();
