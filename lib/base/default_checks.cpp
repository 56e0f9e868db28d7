#include <tensorpool/pool_options.hpp>

namespace tensorpool {

// Decided when the library is built, so that all its users agree.
Checks default_checks() noexcept {
#ifdef NDEBUG
    return Checks::off;
#else
    return Checks::basic;
#endif
}

}  // namespace tensorpool
