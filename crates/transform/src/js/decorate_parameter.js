((index, decorator) => (target, key) => decorator(target, key, index))
