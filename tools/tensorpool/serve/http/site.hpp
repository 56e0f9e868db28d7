#pragma once

#include <httplib.h>

namespace tensorpool::command::serve {

/// Answers requests. All functions may be called from any thread.
class Site {
public:
    virtual ~Site() = default;
    /// The headers of every answer.
    virtual httplib::Headers headers() const = 0;
    /// Answers a request. Returns false if `take` is to answer it after the body has been read.
    virtual bool answer(const httplib::Request& request, httplib::Response& response) = 0;
    virtual void take(const httplib::Request& request, httplib::Response& response) = 0;
};

}  // namespace tensorpool::command::serve
