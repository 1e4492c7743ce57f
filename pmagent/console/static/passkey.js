/* Passkeys. The server's options stand in form[data-passkey]; the browser's answer goes into its field "answer", and the
   form is sent as any other, with the challenge. */
"use strict";
(() => {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const button = form.querySelector("button"), told = form.querySelector("[data-told]");
    if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
      told.textContent = "This browser has no passkeys, or this page is not one where they work.";
      continue;
    }
    button.disabled = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      told.textContent = "Your device asks you now.";
      try {
        const options = JSON.parse(form.dataset.passkey), kinds = PublicKeyCredential, keys = navigator.credentials;
        const made = "user" in options
          ? await keys.create({ publicKey: kinds.parseCreationOptionsFromJSON(options) })
          : await keys.get({ publicKey: kinds.parseRequestOptionsFromJSON(options) });
        form.elements.challenge.value = options.challenge;
        form.elements.answer.value = JSON.stringify(made.toJSON());
        form.submit(); // not heard here again
      } catch (error) {
        told.textContent = `Nothing was sent: ${error.message}`;
        button.disabled = false;
      }
    });
  }
})();
