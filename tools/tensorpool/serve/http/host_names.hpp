#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http/listen_address.hpp"

namespace tensorpool::command::serve {

/// The names under which the server may be asked. A page from elsewhere can make the browser take
/// its own name for this server's address ("DNS rebinding"): its requests then come with that name.
class HostNames {
public:
    explicit HostNames(const ListenAddress& address);

    /// Of the value of a `Host` header; ports do not matter, for a tunnel may have another.
    bool contain(std::string_view host) const;

private:
    std::vector<std::string> names_;
    bool any_number_;  ///< any address in numbers: nobody can give one another meaning
};

}  // namespace tensorpool::command::serve
