#pragma once

#include <string>

#include <tensorpool/model_file.hpp>

namespace tensorpool::command::model {

/// For people, on one line, as it is in the file: not yet printable. Long strings are cut, arrays
/// told by their number ("array of 151,936 strings"), save short ones of whole numbers.
std::string text_of(const MetadataValue& value);

}  // namespace tensorpool::command::model
