// Empty. It is compiled to precompile the headers that most tests include.
