// The editor of a cell, CodeMirror with Python: esbuild makes live/editor.js of it.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import {
  bracketMatching,
  HighlightStyle,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The colours of the page, light and dark.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "light-dark(#7a2aa8, #d3a6f5)" },
  { tag: tags.string, color: "light-dark(#1d6b3c, #8fd6a6)" },
  { tag: tags.number, color: "light-dark(#9a3d00, #f2b07a)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
]);

// Tab indents, so Escape first lets it leave, as in CodeMirror's own manual.
export function edit(parent, doc, label, { changed, run }) {
  const ours = [{ key: "Shift-Enter", run: () => (run(), true) }];
  const told = EditorView.contentAttributes.of({ "aria-label": label });
  const heard = EditorView.updateListener.of((update) => {
    if (update.docChanged) changed(update.state.doc.toString());
  });
  const keys = [
    Prec.highest(keymap.of(ours)),
    keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap]),
  ];
  const looks = [drawSelection(), bracketMatching(), syntaxHighlighting(colours)];
  const extensions = [...keys, ...looks, history(), indentUnit.of("    "), python(), told, heard];
  return new EditorView({ parent, state: EditorState.create({ doc, extensions }) });
}
