#include <tensorpool/pool_options.hpp>

namespace tensorpool {

// Decided when the library is built, so that all of its users get the same default.
Checks default_checks() noexcept {
#ifdef NDEBUG
    return Checks::off;
#else
    return Checks::basic;
#endif
}

}  // namespace tensorpool
