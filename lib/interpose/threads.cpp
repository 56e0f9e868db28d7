// Notes that the program creates threads: the background trimmer must not be started from malloc or
// free, which the C library calls under locks that the start of a thread needs.

#include "interpose/blocks_of_pool.hpp"
#include "interpose/next_call.hpp"
#include "pool/background_trimmer.hpp"

namespace tensorpool::interpose {
namespace {

constinit Next<platform::PthreadCreate> next_pthread_create{"pthread_create"};
constinit Next<platform::ThrdCreate> next_thrd_create{"thrd_create"};

[[maybe_unused]] const bool finds_early = (next_pthread_create.get(), next_thrd_create.get(), true);

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

extern "C" {

TENSORPOOL_API int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*run)(void*), void* argument) noexcept {
    const int error = interpose::next_pthread_create.get()(thread, attributes, run, argument);
    if (error == 0 && !interpose::must_stay_out()) tensorpool::detail::program_created_thread();
    return error;
}

TENSORPOOL_API int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
    const int result = interpose::next_thrd_create.get()(thread, run, argument);
    if (result == thrd_success && !interpose::must_stay_out())
        tensorpool::detail::program_created_thread();
    return result;
}
}
