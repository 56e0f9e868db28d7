#include <pthread.h>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

bool make_thread_key(ThreadKey& key) noexcept {
    const SystemCalls system_calls;
    pthread_key_t made{};
    if (pthread_key_create(&made, run_exit_handler) != 0) return false;
    key = made;
    return true;
}

// A value other than null causes the destructor to be called. The system resets the value before
// that, so setting it again from within causes another round (at most
// PTHREAD_DESTRUCTOR_ITERATIONS).
bool set_thread_key(ThreadKey key, void* value) noexcept {
    const SystemCalls system_calls;
    return pthread_setspecific(static_cast<pthread_key_t>(key), value) == 0;
}

}  // namespace tensorpool::platform
