#pragma once

#include <pybind11/pybind11.h>

namespace tensorpool::python {

/// Makes this process answer requests to name the holders of arrays (HolderRequest) by a call of
/// `find`, which returns a str. It is called on the main thread when that next runs Python code. An
/// error of it becomes the answer. Requires the interpreter's lock.
void answer_holders_by(const pybind11::function& find);
/// Stops answering, before the interpreter ends.
void stop_answering_holders();

}  // namespace tensorpool::python
