// The client of `smartmem lsp`; everything else is in the server.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("smartmem").get("command", "smartmem");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("smartmem", "smartmem rules", { run: server, debug: server }, {
    documentSelector: [{ scheme: "file", language: "smr" }],
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
