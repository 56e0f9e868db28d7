// Notes that the program creates threads: the background trimmer must not be started from malloc or
// free, which the C library calls under locks that the start of a thread needs.

#include <atomic>

#include "platform/process/next_function_linux.hpp"
#include "pool/background_trimmer.hpp"

namespace tensorpool::interpose {
namespace {

using platform::PthreadCreate;
using platform::ThrdCreate;

/// A function that follows this library in the loader's order. It is looked up while this library
/// is loaded, or at the first call if a library that was loaded earlier makes it. A look-up takes
/// the loader's lock, which a thread that waits for new threads may hold.
template <class Type>
class Next {
public:
    constexpr explicit Next(const char* name) noexcept : name_(name) {}

    Type get() noexcept {
        // Relaxed: it leads to code.
        Type function = function_.load(std::memory_order_relaxed);
        if (function == nullptr) {
            function = reinterpret_cast<Type>(platform::next_function(name_));
            function_.store(function, std::memory_order_relaxed);
        }
        return function;
    }

private:
    const char* name_;
    std::atomic<Type> function_ = nullptr;
};

constinit Next<PthreadCreate> next_pthread_create{"pthread_create"};
constinit Next<ThrdCreate> next_thrd_create{"thrd_create"};

[[maybe_unused]] const bool finds_early = (next_pthread_create.get(), next_thrd_create.get(), true);

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

extern "C" {

TENSORPOOL_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*run)(void*), void* argument) noexcept {
    const int error = interpose::next_pthread_create.get()(thread, attributes, run, argument);
    if (error == 0) tensorpool::detail::program_created_thread();
    return error;
}

TENSORPOOL_API int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
    const int result = interpose::next_thrd_create.get()(thread, run, argument);
    if (result == thrd_success) tensorpool::detail::program_created_thread();
    return result;
}
}
