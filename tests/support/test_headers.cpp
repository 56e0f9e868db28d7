// Nothing: this file is compiled so that the headers of most tests are precompiled once.
