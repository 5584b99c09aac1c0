// The editor of a cell, CodeMirror with Python: esbuild makes live/editor.js of it.
import { indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorView, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { minimalSetup } from "codemirror";

const colours = syntaxHighlighting(classHighlighter); // their classes are in live.css
const looks = [bracketMatching(), colours, indentUnit.of("    "), python()];

// Takes the place of a text area. Tab indents, so Escape first lets it leave, as in CodeMirror's
// own manual.
export function edit(box, changed) {
  const { value: doc, selectionStart: anchor, selectionEnd: head, parentElement: parent } = box;
  const label = EditorView.contentAttributes.of({ "aria-label": box.ariaLabel });
  const heard = EditorView.updateListener.of((update) => {
    if (update.docChanged) changed(update.state.doc.toString());
  });
  const extensions = [keymap.of([indentWithTab]), minimalSetup, looks, label, heard];
  const focused = document.activeElement === box;
  parent.replaceChildren();
  const editor = new EditorView({ parent, doc, selection: { anchor, head }, extensions });
  if (focused) editor.focus();
  return editor;
}
