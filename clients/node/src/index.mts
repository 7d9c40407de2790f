// One copy of the package serves import and require: its classes are the same in both.
export * from "./index.js";
