# Flags and the three helpers that every folder's CMakeLists.txt uses.

add_library(peerlan_flags INTERFACE)
target_include_directories(peerlan_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(peerlan_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wnull-dereference -Wimplicit-fallthrough -Werror
  -fno-omit-frame-pointer -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these falsely inside libstdc++ at -O2; clang checks the same code without them.
  target_compile_options(peerlan_flags INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized
    -Wno-stringop-overflow -Wno-array-bounds -Wno-restrict -Wno-stringop-overread -Wno-dangling-pointer)
endif()
if(PEERLAN_SANITIZE)
  target_compile_options(peerlan_flags INTERFACE -fsanitize=${PEERLAN_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(peerlan_flags INTERFACE -fsanitize=${PEERLAN_SANITIZE})
endif()
if(PEERLAN_FUZZ)
  target_compile_options(peerlan_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# peerlan_library(NAME [LINKS...]): a static library of all .cpp of the folder, private links only.
# settings.cpp is left out: it is a library of its own (NAME_settings), which config/ links too.
function(peerlan_library name)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "/settings\\.cpp$")
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/settings.cpp)
    add_library(${name}_settings STATIC settings.cpp)
    target_link_libraries(${name}_settings PRIVATE peerlan_flags peerlan_net)
    list(APPEND ARGN ${name}_settings)
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PRIVATE peerlan_flags ${ARGN})
endfunction()

# peerlan_test(NAME [OPTIMIZED] SOURCES... LINKS libs...): a GoogleTest program registered with CTest, label "fast".
# Not optimized, if not told otherwise: a third less to wait for the compiler; what is tested is.
function(peerlan_test name)
  cmake_parse_arguments(arg "OPTIMIZED" "LABEL" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_link_libraries(${name} PRIVATE peerlan_flags ${arg_LINKS} GTest::gmock GTest::gtest_main Threads::Threads)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_LABEL)
    set(arg_LABEL fast)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT 300)
endfunction()

# peerlan_fuzz(NAME SOURCES... LINKS libs...): a libFuzzer target, only in the fuzz preset.
function(peerlan_fuzz name)
  if(PEERLAN_FUZZ)
    cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE peerlan_flags ${arg_LINKS} -fsanitize=fuzzer)
  endif()
endfunction()
