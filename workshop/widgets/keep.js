// JupyterLab saves no widgets unless told, and "model not found" stands there the next day.
const STATE = "application/vnd.jupyter.widget-state+json";
/** The ids of the models that outputs show, or that other models refer to. */
const mentioned = (value) =>
  [...JSON.stringify(value).matchAll(/"(?:model_id":"|IPY_MODEL_)([^"]+)"/g)].map(([, id]) => id);

/** Where JupyterLab runs, the notebook's first widget of ours sees to it that all are saved. */
export function initialize({ model: { widget_manager: manager } }) {
  const { model: notebook, saveState, sessionContext } = manager?.context ?? {};
  if (!notebook?.setMetadata || !manager.get_state_sync || manager.keepsWidgets) return;
  manager.keepsWidgets = true;
  const written = () => notebook.getMetadata("widgets")?.[STATE]?.state;
  let known = { ...written() }; // by the time we write, a setting of JupyterLab may have cut it
  /** All that is shown, of today or before, and what else runs; ours, unseen, would pile up. */
  function keep() {
    const now = manager.get_state_sync({ drop_defaults: true });
    const [all, kept] = [{ ...written(), ...known, ...now.state }, {}];
    const add = (id) => {
      if (id in kept || !all[id]) return;
      kept[id] = all[id];
      mentioned(all[id].state).forEach(add);
    };
    mentioned(notebook.toJSON().cells).forEach(add);
    Object.keys(now.state)
      .filter((id) => !now.state[id].state._esm)
      .forEach(add);
    notebook.setMetadata("widgets", { [STATE]: { ...now, state: (known = kept) } });
  }
  saveState.connect((_, stage) => stage === "started" && keep());
  sessionContext.statusChanged.connect((_, status) => status === "restarting" && keep());
}
