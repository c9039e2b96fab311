//! Promises that are rejected and that nothing handles.

use std::rc::Rc;

use crate::exception;
use crate::ffi::{Context, EngineString, NativeFunction, Thrown};
use crate::isolate::Shared;

/// Has the engine tell of each. They are described without running guest code.
pub(crate) fn watch(context: &Context, shared: &Rc<Shared>) -> NativeFunction {
    let told = Rc::clone(shared);
    let function = NativeFunction::new(
        context,
        &EngineString::from_str(context.table(), ""),
        Box::new(move |context, arguments| {
            let requests = &told.requests;
            if let (&[promise, reason], Some(request)) = (arguments, requests.outermost())
                && told.deadline.stopped().is_none()
                && requests.keeps_rejection(request)
            {
                let error = exception::describe(context, &told, Thrown(reason));
                requests.add_rejection(context, request, promise, error);
            }
            Ok(context.undefined())
        }),
    );
    context.report_unhandled_rejections_to(&function);
    function
}
