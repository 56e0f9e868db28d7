#pragma once

#include <string>
#include <vector>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::profile {

/// Returns the calls of a site for a person to read, innermost first, as in a debugger. They are
/// safe to print.
///
/// In a Python program, those of Python are left, and successive calls of libraries below them are
/// one text. In other programs, calls outside of `main` are left out.
std::vector<std::string> short_stack_of(const NamedProfile& named, const ProfileSite& site);

}  // namespace tensorpool::command::profile
