#include "trace/recorder.hpp"

namespace tensorpool::trace {
namespace {

// Set while the library is loaded, before there are threads. Otherwise the child of a fork that
// came after the control was made and before the handlers were set would use memory that it does
// not have.
[[maybe_unused]] const bool has_handlers_from_the_start = recorder().set_handlers();

// Looked for early: later, it would be done under the recorder's lock, and the loader calls malloc.
[[maybe_unused]] const bool knows_python = platform::find_python();

// Registered early: later, the call would be made under the recorder's lock. atexit has a lock of
// its own, under which it calls malloc, and a pool may serve malloc.
[[maybe_unused]] const bool finishes_at_exit = std::atexit([] { recorder().finish(); }) == 0;

}  // namespace

}  // namespace tensorpool::trace

namespace tensorpool::events {

// Called by the layers below; see recorder_hooks.hpp.
void answer_recorder() noexcept {
    trace::recorder().answer();
}

}  // namespace tensorpool::events
