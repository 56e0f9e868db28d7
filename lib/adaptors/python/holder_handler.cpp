#include "adaptors/python/module_part.hpp"

#include <atomic>

#include <tensorpool/holder_request.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

// Used under the interpreter's lock. Never given back, since it may be in use at the end.
PyObject* finder = nullptr;

// The request to answer; 0: none. Relaxed, because a request has no other data.
constinit std::atomic<std::uint64_t> wanted = 0;

std::string find_holders() {
    const auto find = py::reinterpret_borrow<py::object>(finder);
    return find().cast<std::string>();
}

// Runs on the main thread, at a safe point of the interpreter. Exceptions that end the program, as
// by Ctrl-C, are raised in it. An error of the search is none of the program's.
int answer_wanted(void*) noexcept {
    const std::uint64_t request = wanted.exchange(0, std::memory_order_relaxed);
    if (request == 0 || finder == nullptr) return 0;
    try {
        answer_holders(request, find_holders());
        return 0;
    } catch (py::error_already_set& error) {
        if (!error.matches(PyExc_Exception)) {
            answer_holders(request, "{\"error\": \"the search was interrupted\"}");
            error.restore();
            return -1;
        }
    } catch (...) {
    }
    answer_holders(request, "{\"error\": \"the search failed\"}");
    return 0;
}

// Any thread may add a pending call, with or without the interpreter's lock. If too many are
// waiting, this one is not added: it is again with the next request.
void add_call(std::uint64_t request) noexcept {
    wanted.store(request, std::memory_order_relaxed);
    (void)Py_AddPendingCall(answer_wanted, nullptr);
}

/// Makes this process answer requests to name the holders of arrays (HolderRequest) by a call of
/// `find`, which returns a str. It is called on the main thread when that next runs Python code. An
/// error of it becomes the answer. Requires the interpreter's lock.
void answer_holders_by(const py::function& find) {
    Py_XDECREF(std::exchange(finder, find.inc_ref().ptr()));
    const py::gil_scoped_release release;
    set_holder_handler(add_call);
}

/// Stops answering, before the interpreter ends.
void stop_answering_holders() {
    const py::gil_scoped_release release;
    set_holder_handler(nullptr);
}

const ModulePart part([](py::module_& module) {
    module.def("answer_holders_by", answer_holders_by);
    module.def("stop_answering_holders", stop_answering_holders);
});

}  // namespace
}  // namespace tensorpool::python
