typeof setTimeout(() => 1, 1) !== 'undefined'
setTimeout()
setTimeout('code')
queueMicrotask()
queueMicrotask(5)
clearTimeout()
clearTimeout(12345)
clearTimeout(null)
[typeof setTimeout, setTimeout.name]
[typeof setInterval, setInterval.name]
[typeof clearTimeout, clearTimeout.name]
[typeof queueMicrotask, queueMicrotask.name]
[typeof structuredClone, structuredClone.name]
[typeof atob, atob.name]
[typeof btoa, btoa.name]
[typeof URL, URL.name]
[typeof Event, Event.name]
[typeof URLSearchParams, URLSearchParams.name]
[typeof TextEncoder, TextEncoder.name]
[typeof TextDecoder, TextDecoder.name]
[typeof AbortController, AbortController.name]
[typeof AbortSignal, AbortSignal.name]
[typeof EventTarget, EventTarget.name]
[typeof DOMException, DOMException.name]
Object.keys(Object.getOwnPropertyDescriptors(URL.prototype)).filter(k => k !== 'constructor').sort().join()
Object.keys(Object.getOwnPropertyDescriptors(URLSearchParams.prototype)).filter(k => k !== 'constructor').sort().join()
Object.keys(Object.getOwnPropertyDescriptors(AbortController.prototype)).filter(k => k !== 'constructor').sort().join()
Object.keys(Object.getOwnPropertyDescriptors(TextDecoder.prototype)).filter(k => k !== 'constructor').sort().join()
Object.keys(Object.getOwnPropertyDescriptors(TextEncoder.prototype)).filter(k => k !== 'constructor').sort().join()
crypto.getRandomValues(new Uint8Array(0))
crypto.getRandomValues(new Float32Array(1))
crypto.getRandomValues([])
crypto.getRandomValues(new Uint8Array(65537))
/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())
typeof performance.now() + typeof performance.timeOrigin
