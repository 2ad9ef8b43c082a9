// Elements of the page. All text is inserted as text, never as HTML. Knows: the DOM. Blind to: everything else.

const SVG = "http://www.w3.org/2000/svg";

/** An element: h("p", {class: "note", onclick: f}, "text", child). Attributes that are null or false are left out. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) element.style.setProperty(key, value);
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what an element contains. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Let the arrow keys move between buttons, of which only one can be reached with Tab. */
export function roving(container, selector = "button") {
  const all = () => [...container.querySelectorAll(selector)];
  const focusable = (one) => all().forEach((other) => other.setAttribute("tabindex", other === one ? 0 : -1));
  container.addEventListener("focusin", (event) => {
    const one = event.target.closest(selector);
    if (one) focusable(one);
  });
  container.addEventListener("keydown", (event) => {
    const list = all(), here = list.indexOf(event.target.closest(selector));
    const to = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: list.length - 1 }[event.key];
    if (here < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    list[Math.max(0, Math.min(list.length - 1, to))].focus();
  });
  const list = all();
  focusable(list.find((one) => one.getAttribute("aria-pressed") === "true" || one.getAttribute("aria-selected") === "true") ?? list[0]);
}

/** A number with a fixed count of digits and a real minus sign. */
export function number(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? "\u2212" : "") + text;
}

export function percent(value) {
  return value >= 0.0995 ? `${(100 * value).toFixed(0)} %` : value >= 0.00995 ? `${(100 * value).toFixed(1)} %` : value >= 0.0001 ? `${(100 * value).toFixed(2)} %` : "< 0.01 %";
}
