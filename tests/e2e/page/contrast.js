// What has less contrast than WCAG 2 AA asks for: 4.5 for text, 3 for large text and for graphics.
() => {
  const parsed = (text) => {
    const parts = text.match(/-?[\d.]+(e-?\d+)?/g)?.map(Number) ?? [0, 0, 0, 0];
    const [r, g, b, a = 1] = text.startsWith("color(") ? parts : [...parts.slice(0, 3).map((v) => v / 255), ...parts.slice(3)];
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const luminance = (color) => {
    const [r, g, b] = color.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const grounds = new Map([[null, [1, 1, 1, 1]]]);
  const ground = (node) => {
    if (!grounds.has(node)) grounds.set(node, over(parsed(getComputedStyle(node).backgroundColor), ground(node.parentElement)));
    return grounds.get(node);
  };
  const opacities = new Map([[null, 1]]);
  const opacity = (node) => {
    if (!opacities.has(node)) opacities.set(node, Number(getComputedStyle(node).opacity) * opacity(node.parentElement));
    return opacities.get(node);
  };
  const seen = (node) => node.checkVisibility() && node.getBoundingClientRect().width > 1
    && !node.closest(":disabled, .unseen, .skip");
  const failed = [];
  let judged = 0;
  const judge = (node, color, least, what, on = ground(node)) => {
    const [r, g, b, a] = parsed(color);
    const reached = ratio(over([r, g, b, a * opacity(node)], on), on);
    judged += 1;
    if (reached < least) failed.push(`${reached.toFixed(2)} < ${least}: ${what} of ${node.tagName}.${node.getAttribute("class")} in ${node.closest("section")?.querySelector("h2")?.textContent}`);
  };
  const text = (node, style, what) => {
    const px = parseFloat(style.fontSize);
    const large = px >= 24 || (px >= 18.66 && Number(style.fontWeight) >= 700);
    judge(node, node instanceof SVGElement ? style.fill : style.color, large ? 3 : 4.5, what);
  };
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const node = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || node.closest("title, script, noscript, dialog:not([open]), option") || !seen(node)) continue;
    text(node, getComputedStyle(node), JSON.stringify(words.currentNode.data.trim().slice(0, 30)));
  }
  for (const node of document.querySelectorAll("input, select, textarea")) {
    if (!seen(node)) continue;
    if (node.placeholder) text(node, getComputedStyle(node, "::placeholder"), "placeholder");
    text(node, getComputedStyle(node), "value");
    judge(node, getComputedStyle(node).borderTopColor, 3, "border", ground(node.parentElement));
  }
  for (const node of document.querySelectorAll("td")) {
    const before = getComputedStyle(node, "::before");
    if (seen(node) && before.content.length > 4) text(node, before, `heading ${before.content}`);
  }
  const GRAPHICS = [
    [".line, .mark line, .cursor line, .axes .zero, .axes .hinge, .spark .drift, .boundary:not(.halo), .ring", "stroke"],
    [".dot, .bin, .mark path, .point, .cursor circle, .sides path", "fill"],
    [".swatch", "borderTopColor"],
    [".bar, .share, div.meter > span", "backgroundColor"],
  ];
  for (const [selector, property] of GRAPHICS) {
    for (const node of document.querySelectorAll(selector)) {
      if (!node.checkVisibility()) continue;
      const style = getComputedStyle(node);
      // A mark on a shaded plane is told from the shade by its outline.
      judge(node, style[property], 3, property, node.matches(".point") ? parsed(style.stroke) : ground(node.parentElement));
    }
  }
  for (const node of document.querySelectorAll(".status")) {
    if (seen(node)) judge(node, getComputedStyle(node, "::before").backgroundColor, 3, "dot");
  }
  return { failed: [...new Set(failed)], judged };
}
