((decorators, target, key, descriptor) => {
  "use strict";
  const member = key !== undefined;
  let result = !member ? target : descriptor === null ? Object.getOwnPropertyDescriptor(target, key) : descriptor;
  for (let index = decorators.length - 1; index >= 0; index--) {
    const decorator = decorators[index];
    if (decorator) result = (member ? decorator(target, key, result) : decorator(result)) || result;
  }
  if (member && result) Object.defineProperty(target, key, result);
  return result;
})
