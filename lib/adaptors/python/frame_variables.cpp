// Before the standard headers, as Python requires.
#include <Python.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_frame.h>
#endif

#include "adaptors/python/module_part.hpp"

namespace tensorpool::python {
namespace {

namespace py = pybind11;

// Returns the variables of a frame as pairs of name and value, cells included. Reads them without
// `f_locals`, whose dict would keep the values alive. Returns none before Python 3.11.

#if PY_VERSION_HEX >= 0x030D0000

// Since 3.13 this is a view of the variables, which keeps no value.
py::list variables_of(const py::handle& frame) {
    py::list variables;
    for (const py::handle pair : py::list(frame.attr("f_locals").attr("items")())) {
        variables.append(pair);
    }
    return variables;
}

#elif PY_VERSION_HEX >= 0x030C0000

py::list variables_of(const py::handle& frame) {
    auto* const object = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(object)));
    py::list variables;
    for (const char* const names : {"co_varnames", "co_cellvars", "co_freevars"}) {
        for (const py::handle name : code.attr(names)) {
            const auto value =
                py::reinterpret_steal<py::object>(PyFrame_GetVar(object, name.ptr()));
            if (!value) {
                PyErr_Clear();  // it has no value at present
            } else {
                variables.append(py::make_tuple(name, value));
            }
        }
    }
    return variables;
}

#elif PY_VERSION_HEX >= 0x030B0000

py::list variables_of(const py::handle& frame) {
    const _PyInterpreterFrame* const data = reinterpret_cast<PyFrameObject*>(frame.ptr())->f_frame;
    py::list variables;
    for (int i = 0; i < data->f_code->co_nlocalsplus; ++i) {
        if (data->localsplus[i] == nullptr) continue;  // it has no value at present
        variables.append(
            py::make_tuple(py::handle(PyTuple_GET_ITEM(data->f_code->co_localsplusnames, i)),
                           py::handle(data->localsplus[i])));
    }
    return variables;
}

#else

py::list variables_of(const py::handle&) {
    return {};
}

#endif

const ModulePart part([](py::module_& module) { module.def("variables_of", variables_of); });

}  // namespace
}  // namespace tensorpool::python
