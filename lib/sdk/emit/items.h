/* The types of items in the bytes of struct stave_args, shared by builder and reader. */
#pragma once

enum sv_item {
    SV_ITEM_INT = 1,
    SV_ITEM_UINT,
    SV_ITEM_DOUBLE,
    SV_ITEM_BOOL,
    SV_ITEM_POINTER,
    SV_ITEM_TEXT,
    SV_ITEM_DICT,
    SV_ITEM_LIST,
    SV_ITEM_END,
    SV_ITEM_NULL
};
