#pragma once

#include <string>

namespace tensorpool::command::serve {

/// By `xdg-open`; where there is none, says so and does nothing. The token is not part of the
/// address, for other users can read the words of a command: the page asks for it.
void open_browser(const std::string& url);

}  // namespace tensorpool::command::serve
