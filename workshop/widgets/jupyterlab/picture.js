// JupyterLab writes "model not found" where the state of a widget was not saved. Its picture lies
// in the same output: show that, also until the widget is drawn. This is a prebuilt extension,
// written by hand: JupyterLab loads the file with its page, then calls `init` and `get`.
const VIEW = "application/vnd.jupyter.widget-view+json";
let packages; // which JupyterLab and its extensions share: { name: { version: { get } } }

async function shared(name) {
  const versions = Object.values(packages[name]);
  return (await (versions.find(({ loaded }) => loaded) ?? versions.at(-1)).get())();
}

function picture({ data, metadata }) {
  const image = document.createElement("img");
  const { alt = "", width } = metadata["image/png"] ?? {};
  Object.assign(image, { alt, src: `data:image/png;base64,${data["image/png"]}` });
  Object.assign(image.style, { width: width && `${width}px`, maxWidth: "100%" });
  return image;
}

/** Let every place of a widget show the picture while it has no widget. */
function activate(_, rendermime) {
  const example = rendermime.createRenderer(VIEW);
  const places = Object.getPrototypeOf(example);
  example.dispose();
  const { renderModel } = places;
  async function draw(model) {
    if (this.isDisposed) return;
    const failed = () => !(this.isDisposed || this.isHidden || this.widgets.length);
    const stand = () => model.data["image/png"] && this.node.replaceChildren(picture(model));
    this._rerenderMimeModel = null;
    for (const old of [...this.widgets]) old.parent = null; // disposed, it would hide its place
    const drawn = renderModel.call(this, model);
    stand();
    await drawn;
    if (!failed()) return;
    stand();
    this._rerenderMimeModel = model; // for ipywidgets to try again when it has read the file
  }
  // One after the other: where two overlap, the later empties the place without telling Lumino,
  // which then looks for the earlier widget in vain.
  places.renderModel = function (model) {
    const before = Promise.resolve(this.drawing).catch(() => {}); // its own caller was told
    this.drawing = before.then(() => draw.call(this, model));
    return this.drawing;
  };
  // Its own empties the place at once, also while something is being drawn there.
  places._rerender = function () {
    if (this._rerenderMimeModel) this.renderModel(this._rerenderMimeModel);
  };
}

async function plugins() {
  if (!packages["@jupyter-widgets/base"]) return []; // ipywidgets is not there
  const { IRenderMimeRegistry } = await shared("@jupyterlab/rendermime");
  const { IJupyterWidgetRegistry } = await shared("@jupyter-widgets/base");
  const requires = [IRenderMimeRegistry, IJupyterWidgetRegistry];
  const id = "attention-step-by-step:picture";
  return [{ id, autoStart: true, requires, activate }];
}

(window._JUPYTERLAB ??= {})["attention-step-by-step"] = {
  init: (scope) => void (packages = scope),
  get: async () => {
    const found = await plugins().catch((error) => (console.error(error), [])); // Lab must start
    return () => ({ __esModule: true, default: found });
  },
};
