// Before the standard headers, as Python requires.
#include <Python.h>
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_frame.h>
#endif

#include "adaptors/python/module_part.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/ndarraytypes.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include <tensorpool/holder_request.hpp>

namespace tensorpool::python {
namespace {

namespace py = pybind11;

// Used under the interpreter's lock. Never given back, since it may be in use at the end.
PyObject* finder = nullptr;

// The request to answer; 0: none. Relaxed, because a request has no other data.
constinit std::atomic<std::uint64_t> wanted = 0;

// Runs on the main thread, at a safe point of the interpreter. Exceptions that end the program, as
// by Ctrl-C, are raised in it. An error of the search is none of the program's.
int answer_wanted(void*) noexcept {
    const std::uint64_t request = wanted.exchange(0, std::memory_order_relaxed);
    if (request == 0 || finder == nullptr) return 0;
    try {
        const auto find = py::reinterpret_borrow<py::object>(finder);
        answer_holders(request, find().cast<std::string>());
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
    set_holder_handler(nullptr);
}

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

// What objects refer to, as the garbage collector sees it, like gc.get_referents. NumPy's arrays,
// and dicts and tuples of them, are not tracked, so gc.get_objects and gc.get_referrers miss them.
// The functions run no Python code and hold the interpreter's lock. They stop at the time `until`,
// in nanoseconds of the steady clock, which is that of time.monotonic_ns.

constexpr std::size_t objects_between_looks = 4096;

bool is_past(std::int64_t until) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() > until;
}

/// Calls `visit(referent)` for each object to which `object` refers. The functions of types are C
/// code, through which no exception may pass.
template <class Visit>
void for_each_referent(PyObject* object, Visit& visit) {
    const traverseproc traverse = Py_TYPE(object)->tp_traverse;
    if (PyObject_IS_GC(object) == 0 || traverse == nullptr) return;
    const auto call = [](PyObject* referent, void* to) noexcept {
        try {
            (*static_cast<Visit*>(to))(referent);
            return 0;
        } catch (...) {
            return 1;
        }
    };
    if (traverse(object, call, &visit) != 0) throw std::bad_alloc();
}

/// A few types, most of which are recognized as others without a search.
class Types {
public:
    explicit Types(const py::set& types) {
        for (const py::handle type : types) {
            types_.insert(type.ptr());
            bits_ |= bit_of(type.ptr());
        }
    }
    bool contain(const void* type) const {
        return (bits_ & bit_of(type)) != 0 && types_.contains(type);
    }

private:
    // Types lie at least this far apart.
    static std::uint64_t bit_of(const void* type) {
        return std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(type) / 64 % 64);
    }

    std::unordered_set<const void*> types_;
    std::uint64_t bits_ = 0;
};

/// Returns the array to whose memory a view leads.
PyArrayObject* owner_of(PyObject* array, const Types& array_types) {
    auto* owner = reinterpret_cast<PyArrayObject*>(array);
    for (PyObject* base = PyArray_BASE(owner);
         base != nullptr && array_types.contain(Py_TYPE(base)); base = PyArray_BASE(owner)) {
        owner = reinterpret_cast<PyArrayObject*>(base);
    }
    return owner;
}

npy_intp bytes_of(PyArrayObject* array) {
    npy_intp bytes = PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); ++i) bytes *= PyArray_DIM(array, i);
    return bytes;
}

/// Returns the arrays whose memory is among the `count` largest, each once.
py::list with_largest_memory(const std::vector<PyObject*>& arrays, const Types& array_types,
                             std::size_t count) {
    std::vector<std::pair<npy_intp, PyArrayObject*>> largest;  // a heap, the smallest first
    std::unordered_set<PyArrayObject*> kept;
    for (PyObject* const array : arrays) {
        PyArrayObject* const owner = owner_of(array, array_types);
        const std::pair one(bytes_of(owner), owner);
        if (largest.size() == count && one <= largest.front()) continue;
        if (!kept.insert(owner).second) continue;
        largest.push_back(one);
        std::ranges::push_heap(largest, std::greater());
        if (largest.size() <= count) continue;
        std::ranges::pop_heap(largest, std::greater());
        kept.erase(largest.back().second);
        largest.pop_back();
    }
    std::unordered_set<PyObject*> seen;
    py::list found;
    for (PyObject* const array : arrays) {
        if (kept.contains(owner_of(array, array_types)) && seen.insert(array).second) {
            found.append(py::handle(array));
        }
    }
    return found;
}

/// Whether the garbage collector has dropped a container because it holds nothing but, for example,
/// arrays.
bool is_untracked_container(PyObject* object) {
    if (PyDict_CheckExact(object)) {
        return PyDict_GET_SIZE(object) != 0 && PyObject_GC_IsTracked(object) == 0;
    }
    return PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) != 0 &&
           PyObject_GC_IsTracked(object) == 0;
}

/// Finds the arrays to which `objects` and the untracked containers below them refer, and the
/// tensors among `objects`, by their exact types. Returns two lists: the arrays whose memory, which
/// may be another array's, is among the `count` largest, and all tensors. Adds the containers to
/// `objects`. Needs no NumPy.
py::tuple find_arrays(py::list objects, const py::set& array_types, const py::set& tensor_types,
                      std::size_t count, std::int64_t until) {
    const Types is_array(array_types);
    const Types is_tensor(tensor_types);
    std::vector<PyObject*> arrays;
    std::unordered_set<PyObject*> containers;
    py::list tensors;
    auto look_at = [&](PyObject* object) {
        if (is_array.contain(Py_TYPE(object))) {
            arrays.push_back(object);
        } else if (is_untracked_container(object) && containers.insert(object).second) {
            objects.append(py::handle(object));
        }
    };
    for (std::size_t i = 0; i < objects.size(); ++i) {
        if (i % objects_between_looks == 0 && is_past(until)) break;
        PyObject* const object = PyList_GET_ITEM(objects.ptr(), i);
        if (is_tensor.contain(Py_TYPE(object))) tensors.append(py::handle(object));
        for_each_referent(object, look_at);
    }
    return py::make_tuple(with_largest_memory(arrays, is_array, count), tensors);
}

/// Returns a list of pairs: one of the targets, and one of `objects` that refers to it. A target
/// has at most `max_referrers`.
py::list find_referrers(const py::list& objects, const py::list& targets, std::size_t max_referrers,
                        std::int64_t until) {
    struct Referrers {
        std::size_t count = 0;
        PyObject* last = nullptr;
    };
    std::unordered_map<PyObject*, Referrers> wanted;
    for (const py::handle target : targets) wanted.try_emplace(target.ptr());
    py::list found;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        if (i % objects_between_looks == 0 && is_past(until)) break;
        PyObject* const object = PyList_GET_ITEM(objects.ptr(), i);
        auto look_at = [&](PyObject* referent) {
            const auto target = wanted.find(referent);
            if (target == wanted.end() || target->second.last == object) return;
            target->second.last = object;
            if (target->second.count++ >= max_referrers) return;
            found.append(py::make_tuple(py::handle(referent), py::handle(object)));
        };
        for_each_referent(object, look_at);
    }
    return found;
}

/// Returns the key under which a dict holds an object, or its index in a list or a tuple; None if
/// it does not hold it, or is of another type.
py::object position_in(const py::handle& container, const py::handle& object) {
    PyObject* const held = object.ptr();
    if (PyDict_Check(container.ptr())) {
        Py_ssize_t at = 0;
        PyObject* key = nullptr;
        PyObject* value = nullptr;
        while (PyDict_Next(container.ptr(), &at, &key, &value) != 0) {
            if (value == held) return py::reinterpret_borrow<py::object>(key);
        }
    } else if (PyList_Check(container.ptr()) || PyTuple_Check(container.ptr())) {
        PyObject* const* const items = PySequence_Fast_ITEMS(container.ptr());
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(container.ptr());
        for (Py_ssize_t i = 0; i < count; ++i) {
            if (items[i] == held) return py::int_(i);
        }
    }
    return py::none();
}

const ModulePart part([](py::module_& module) {
    module.def("answer_holders_by", answer_holders_by);
    module.def("stop_answering_holders", stop_answering_holders, Unlocked());
    module.def("variables_of", variables_of);
    module.def("find_arrays", find_arrays);
    module.def("find_referrers", find_referrers);
    module.def("position_in", position_in);
});

}  // namespace
}  // namespace tensorpool::python
