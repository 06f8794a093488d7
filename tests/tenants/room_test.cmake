# What a cell records is read as its users read it.
target_link_libraries(strobe_tenants_test PRIVATE strobe_analyze strobe_trace)
