#pragma once

#include <httplib.h>

#include <chrono>

namespace tensorpool::command::serve {

/// A connection's two directions. Reading ends by the deadline, which is set before it; a write
/// takes all bytes or fails.
class Transport : public httplib::Stream {
public:
    using Deadline = std::chrono::steady_clock::time_point;
    virtual void set_deadline(Deadline deadline) = 0;
};

}  // namespace tensorpool::command::serve
