// `DOMException`, by the Web IDL standard.
(function (web) {
  "use strict";

  const { hide, makeInterface, builtins, builtins: { Error } } = web;

  const CODES = {
    __proto__: null,
    IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
    NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11,
    SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17,
    SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23,
    InvalidNodeTypeError: 24, DataCloneError: 25,
  };
  const CONSTANTS = [
    "INDEX_SIZE_ERR", "DOMSTRING_SIZE_ERR", "HIERARCHY_REQUEST_ERR", "WRONG_DOCUMENT_ERR", "INVALID_CHARACTER_ERR",
    "NO_DATA_ALLOWED_ERR", "NO_MODIFICATION_ALLOWED_ERR", "NOT_FOUND_ERR", "NOT_SUPPORTED_ERR", "INUSE_ATTRIBUTE_ERR",
    "INVALID_STATE_ERR", "SYNTAX_ERR", "INVALID_MODIFICATION_ERR", "NAMESPACE_ERR", "INVALID_ACCESS_ERR", "VALIDATION_ERR",
    "TYPE_MISMATCH_ERR", "SECURITY_ERR", "NETWORK_ERR", "ABORT_ERR", "URL_MISMATCH_ERR", "QUOTA_EXCEEDED_ERR",
    "TIMEOUT_ERR", "INVALID_NODE_TYPE_ERR", "DATA_CLONE_ERR",
  ];

  // `name` and `message` are data, as those of the language's own errors are, for the host to read without running anything.
  class DOMException extends Error {
    #name;
    constructor(message = "", options = "Error") {
      super(`${message}`);
      let name = options;
      if (typeof options === "object" && options !== null) {
        name = options.name === undefined ? "Error" : options.name;
        if ("cause" in options) hide(this, "cause", options.cause);
      }
      this.#name = `${name}`;
      hide(this, "name", this.#name);
      hide(this, "message", `${message}`);
    }
    get code() {
      return CODES[this.#name] ?? 0;
    }
    static is(value) {
      return #name in value;
    }
  }
  const { is } = DOMException;
  delete DOMException.is;
  const shown = makeInterface("DOMException", 0, DOMException, Error);
  const show = (name, code) => {
    const descriptor = { __proto__: null, value: code, writable: false, enumerable: true, configurable: false };
    builtins.defineProperty(shown, name, descriptor);
    builtins.defineProperty(DOMException.prototype, name, descriptor);
  };
  for (let i = 0; i < CONSTANTS.length; i++) show(CONSTANTS[i], i + 1);

  return { __proto__: null, DOMException: shown, make: (message, name) => new DOMException(message, name), is };
})
