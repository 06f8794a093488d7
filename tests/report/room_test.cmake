target_sources(strobe_report_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/synthetic_timeline.cc)
target_link_libraries(strobe_report_test PRIVATE nlohmann_json::nlohmann_json)

# The page in a browser, and what info and doctor say: from outside, with Python's standard library only.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TARGET strobe)
  add_executable(strobe_synthetic_trace ${CMAKE_CURRENT_LIST_DIR}/synthetic_trace.cc
                                        ${CMAKE_CURRENT_LIST_DIR}/synthetic_timeline.cc)
  target_include_directories(strobe_synthetic_trace PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(strobe_synthetic_trace PRIVATE strobe_trace)
  strobe_warnings(strobe_synthetic_trace)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
  foreach(script ${scripts})
    get_filename_component(noun ${script} NAME_WE)
    add_test(NAME report.${noun} COMMAND ${Python3_EXECUTABLE} -m unittest -v ${noun}
             WORKING_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})
    set_tests_properties(report.${noun} PROPERTIES TIMEOUT 900 PROCESSORS 2
      ENVIRONMENT "STROBE=$<TARGET_FILE:strobe>;STROBE_SYNTHETIC_TRACE=$<TARGET_FILE:strobe_synthetic_trace>;STROBE_SHARED_DATA=${STROBE_SHARED_DATA};PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/cli;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endif()
