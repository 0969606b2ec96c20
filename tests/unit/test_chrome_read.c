/* The Chrome reader: every phase, every form, every leniency with its position; limits; damage
 * never costs more than its bytes.
 *
 * Inputs are written with single quotes here, which become double ones before they are read. Every
 * row is read at once and again in pieces, so that each token meets the end of the window once. */
#include "chrome_text.h"

#include "core/base/json_scan.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>

#define IN(text) text, sizeof(text) - 1

struct row {
    const char *in;
    size_t len;
    const char *events, *findings; /* NULL: none */
    const char *tracks, *meta;     /* NULL: not looked at, and none */
};

static char *quoted(const char *in, size_t len)
{
    char *json = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        json[i] = in[i] == '\'' ? '"' : in[i];
    json[len] = 0;
    return json;
}

static void check_row(const struct row *row, size_t piece)
{
    struct chrome_text_result r;
    char *json = quoted(row->in, row->len);
    CONTEXT("%.150s in pieces of %zu", row->in, piece);
    chrome_text_read(json, row->len, piece, 0, &r);
    CHECK_INT_EQ(r.rc, 0);
    CHECK_STR_EQ(sv_buf_cstr(&r.events), row->events ? row->events : "");
    CHECK_STR_EQ(sv_buf_cstr(&r.findings), row->findings ? row->findings : "");
    CHECK_STR_EQ(sv_buf_cstr(&r.meta), row->meta ? row->meta : "");
    if (row->tracks)
        CHECK_STR_EQ(sv_buf_cstr(&r.tracks), row->tracks);
    chrome_text_free(&r);
    free(json);
}

static void check_rows(const struct row *rows, size_t n)
{
    static const size_t pieces[] = {0, 1, 3, 17, 64};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < TEST_COUNT(pieces); k++)
            check_row(&rows[i], pieces[k]);
}

TEST(whole_slices_and_edges)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','cat':'c','pid':1,'tid':2,'ts':10,'dur':5}]"),
         .events = "X 10000+5000 p1/t2 a [c]\n"},
        {IN("[{'ph':'B','name':'a','pid':1,'tid':2,'ts':1.5,'args':{'x':1}},{'ph':'E'"
            ",'name':'zzz','cat':'q','pid':1,'tid':2,'ts':2.25,'args':{'y':2}}]"),
         .events = "B 1500 p1/t2 a x=1\n"
                   "E 2250 p1/t2 y=2\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(instants_by_scope)
{
    static const struct row rows[] = {
        {IN("[{'ph':'i','name':'a','pid':1,'tid':2,'ts':1},{'ph':'I','name':'b','pid'"
            ":1,'tid':2,'ts':2,'s':'t'},{'ph':'i','name':'c','pid':1,'tid':2,'ts':3,'"
            "s':'p'},{'ph':'i','name':'d','pid':1,'tid':2,'ts':4,'s':'g'},{'ph':'i','"
            "name':'e','pid':1,'tid':2,'ts':5,'s':'x'}]"),
         .events = "i 1000 p1/t2 a\n"
                   "i 2000 p1/t2 b\n"
                   "i 3000 p1 c process\n"
                   "i 4000 custom:Global d global\n"
                   "i 5000 p1/t2 e s='x'\n",
         .findings = "D 1 instant with an unknown scope, put on its thread @253\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(async_events_by_id)
{
    static const struct row rows[] = {
        {IN("[{'ph':'b','cat':'c','name':'a','id':5,'pid':1,'tid':2,'ts':1},{'ph':'b'"
            ",'cat':'c','name':'in','id':'0x5','pid':9,'tid':2,'ts':2},{'ph':'n','cat"
            "':'c','name':'p','id':'5','pid':1,'tid':2,'ts':3},{'ph':'e','cat':'c','n"
            "ame':'in','id':5,'pid':1,'tid':2,'ts':4},{'ph':'e','cat':'c','name':'a',"
            "'id':5,'pid':1,'tid':2,'ts':5,'args':{'r':0}}]"),
         .events = "B 1000 p1/async:a a [c]\n"
                   "B 2000 p1/async:a in [c]\n"
                   "i 3000 p1/async:a p [c]\n"
                   "E 4000 p1/async:a\n"
                   "E 5000 p1/async:a r=0\n",
         .tracks = "p1\n"
                   "p1/async:a\n"
                   "p9\n"},
        {IN("[{'ph':'b','cat':'c','name':'a','id2':{'local':'0x1'},'pid':1,'tid':1,'t"
            "s':1},{'ph':'b','cat':'c','name':'b','id2':{'local':'0x1'},'pid':2,'tid'"
            ":1,'ts':2},{'ph':'b','cat':'c','name':'g1','id2':{'global':'0x1'},'pid':"
            "1,'tid':1,'ts':3},{'ph':'e','cat':'c','name':'g2','id2':{'global':'0x1'}"
            ",'pid':2,'tid':1,'ts':4},{'ph':'b','cat':'c','name':'s','id':'0x1','scop"
            "e':'q','pid':1,'tid':1,'ts':5},{'ph':'b','cat':'d','name':'t','id':'0x1'"
            ",'pid':1,'tid':1,'ts':6},{'ph':'b','cat':'d','name':'none','pid':1,'tid'"
            ":1,'ts':7}]"),
         .events = "B 1000 p1/async:a a [c]\n"
                   "B 2000 p2/async:b b [c]\n"
                   "B 3000 p1/async:g1 g1 [c]\n"
                   "E 4000 p1/async:g1\n"
                   "B 5000 p1/async:s s [c]\n"
                   "B 6000 p1/async:t t [d]\n"
                   "B 7000 p1/async:none none [d]\n",
         .findings = "D 1 async or object event without an id @457\n"
                     "D 5 begin without an end @1\n",
         .tracks = "p1\n"
                   "p1/async:a\n"
                   "p2\n"
                   "p2/async:b\n"
                   "p1/async:g1\n"
                   "p1/async:s\n"
                   "p1/async:t\n"
                   "p1/async:none\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(legacy_async_and_object_events)
{
    static const struct row rows[] = {
        {IN("[{'ph':'S','cat':'c','name':'a','id':1,'pid':1,'tid':1,'ts':1},{'ph':'S'"
            ",'cat':'c','name':'b','id':1,'pid':1,'tid':1,'ts':2},{'ph':'T','cat':'c'"
            ",'name':'a','id':1,'pid':1,'tid':1,'ts':3,'args':{'step':'s1'}},{'ph':'p"
            "','cat':'c','name':'a','id':1,'pid':1,'tid':1,'ts':4},{'ph':'F','cat':'c"
            "','name':'b','id':1,'pid':1,'tid':1,'ts':5},{'ph':'F','cat':'c','name':'"
            "a','id':1,'pid':1,'tid':1,'ts':6},{'ph':'T','cat':'thread_state','name':"
            "'Running','pid':1,'tid':1,'ts':7,'dur':3,'args':{'cpu':0}}]"),
         .events = "B 1000 p1/async:a a [c]\n"
                   "B 2000 p1/async:b b [c]\n"
                   "i 3000 p1/async:a a [c] step='s1',ph='T'\n"
                   "i 4000 p1/async:a a [c] ph='p'\n"
                   "E 5000 p1/async:b\n"
                   "E 6000 p1/async:a\n"
                   "X 7000+3000 p1/t1/custom:thread state Running [thread_state] cpu=0\n",
         .tracks = "p1\n"
                   "p1/async:a\n"
                   "p1/async:b\n"
                   "p1/t1\n"
                   "p1/t1/custom:thread state\n"},
        {IN("[{'ph':'N','cat':'c','name':'Obj','id':'0x10','pid':1,'tid':1,'ts':1},{'"
            "ph':'O','cat':'c','name':'Obj','id':'0x10','pid':1,'tid':1,'ts':2,'args'"
            ":{'snapshot':{'a':[1]}}},{'ph':'D','cat':'c','name':'Obj','id':'0x10','p"
            "id':1,'tid':1,'ts':3},{'ph':'N','cat':'c','name':'Obj','id':'0x10','pid'"
            ":2,'tid':1,'ts':4}]"),
         .events = "B 1000 p1/async:Obj Obj [c]\n"
                   "i 2000 p1/async:Obj Obj [c] snapshot={a=[1]}\n"
                   "E 3000 p1/async:Obj\n"
                   "B 4000 p2/async:Obj Obj [c]\n",
         .findings = "D 1 begin without an end @238\n",
         .tracks = "p1\n"
                   "p1/async:Obj\n"
                   "p2\n"
                   "p2/async:Obj\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(flows)
{
    static const struct row rows[] = {
        {IN("[{'ph':'s','cat':'c','name':'f','id':7,'pid':1,'tid':1,'ts':1},{'ph':'t'"
            ",'cat':'c','name':'f','id':'0x7','pid':1,'tid':2,'ts':2},{'ph':'f','cat'"
            ":'c','name':'f','id':'7','pid':1,'tid':3,'ts':3,'bp':'e'},{'ph':'f','cat"
            "':'c','name':'f','id':7,'pid':1,'tid':3,'ts':4},{'ph':'s','cat':'d','nam"
            "e':'f','id':7,'pid':1,'tid':1,'ts':5},{'ph':'s','cat':'c','name':'f','id"
            "2':{'local':7},'pid':1,'tid':1,'ts':6,'args':{'k':1}},{'ph':'s','cat':'c"
            "','name':'f','pid':1,'tid':1,'ts':7}]"),
         .events = "f 1000 p1/t1 f [c] >#1\n"
                   "f 2000 p1/t2 f [c] ~#1\n"
                   "f 3000 p1/t3 f [c] <#1\n"
                   "f 4000 p1/t3 f [c] next <#1\n"
                   "f 5000 p1/t1 f [d] >#2\n"
                   "f 6000 p1/t1 f [c] >#3,k=1\n",
         .findings = "D 1 flow event without a usable id skipped @414\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1,'bind_id':'0x15','f"
            "low_out':true},{'ph':'X','name':'b','pid':1,'tid':1,'ts':3,'dur':1,'bind"
            "_id':'0x15','flow_in':true,'flow_out':true,'args':{'k':1}},{'ph':'X','na"
            "me':'c','pid':1,'tid':1,'ts':5,'dur':1,'bind_id':21,'flow_in':true},{'ph"
            "':'X','name':'d','pid':1,'tid':1,'ts':7,'dur':1,'bind_id':21},{'ph':'X',"
            "'name':'batch_build','cat':'batching','ts':1200,'pid':1,'tid':3,'dur':15"
            "0,'id_scope':'serving','id2':{'local':21},'bind_id':'0x0000000000000015'"
            ",'flow_out':true,'args':{'batch_id':21,'request_ids':[7,8]}}]"),
         .events = "X 1000+1000 p1/t1 a >#1\n"
                   "X 3000+1000 p1/t1 b k=1,~#1\n"
                   "X 5000+1000 p1/t1 c <#1\n"
                   "X 7000+1000 p1/t1 d bind_id=21\n"
                   "X 1200000+150000 p1/t3 batch_build [batching] id_scope='serving',batch_i"
                   "d=21,request_ids=[7,8],>#1,id2={local=21}\n",
         .findings = "D 1 bind_id without flow_in or flow_out @284\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(counters)
{
    static const struct row rows[] = {
        {IN("[{'ph':'C','name':'c','pid':1,'tid':1,'ts':1,'args':{'value':1}},{'ph':'"
            "C','name':'m','pid':1,'ts':2,'args':{'m':2.5}},{'ph':'C','name':'s','cat"
            "':'k','pid':1,'tid':1,'ts':3,'args':{'a':1,'b':'2.5','c':'x','d':null,'e"
            "':true,'f':18446744073709551615}},{'ph':'C','name':'c','id':3,'pid':1,'t"
            "s':4,'args':{'value':'9'}},{'ph':'C','name':'u','pid':1,'ts':5,'args':{'"
            "u':1.50,'unit':'MB'}},{'ph':'C','name':'e','pid':1,'ts':6,'args':{}},{'p"
            "h':'C','name':'e','pid':1,'ts':7}]"),
         .events = "C 1000 p1/counter:c 1\n"
                   "C 2000 p1/counter:m 2.5d\n"
                   "C 3000 p1/counter:s/counter:a [k] 1\n"
                   "C 3000 p1/counter:s/counter:b [k] 2.5d\n"
                   "C 3000 p1/counter:s/counter:e [k] 1\n"
                   "C 3000 p1/counter:s/counter:f [k] 1.8446744073709552e+19d\n"
                   "C 4000 p1/counter:c[3] 9\n"
                   "C 5000 p1/counter:u 1.5d\n",
         .findings = "D 2 counter value that is not a number @119\n"
                     "D 2 counter event without a value @382\n",
         .tracks = "p1\n"
                   "p1/counter:c\n"
                   "p1/counter:m\n"
                   "p1/counter:s\n"
                   "p1/counter:s/counter:a\n"
                   "p1/counter:s/counter:b\n"
                   "p1/counter:s/counter:e\n"
                   "p1/counter:s/counter:f\n"
                   "p1/counter:c[3]\n"
                   "p1/counter:u unit MB\n"
                   "p1/counter:e\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(other_phases)
{
    static const struct row rows[] = {
        {IN("[{'ph':'P','name':'p','pid':1,'tid':1,'ts':1,'args':{'a':1}},{'ph':'c','"
            "name':'clock_sync','pid':1,'tid':1,'ts':2,'args':{'sync_id':'abc'}},{'ph"
            "':'R','name':'r','cat':'blink','pid':1,'tid':1,'ts':3,'s':'p'},{'ph':'('"
            ",'name':'x','id':4,'pid':1,'tid':1,'ts':4},{'ph':')','name':'x','pid':1,"
            "'tid':1,'ts':5},{'ph':'v','id':'0x1','name':'d','pid':1,'tid':1,'ts':6,'"
            "args':{'dumps':{}}},{'ph':'V','id':'0x1','name':'d','pid':1,'tid':1,'ts'"
            ":7},{'ph':'Z','name':'?','pid':1,'tid':1,'ts':8},{'ph':'XX','name':'?','"
            "pid':1,'tid':1,'ts':9,'dur':1}]"),
         .events = "i 1000 p1/t1 p a=1,ph='P'\n"
                   "i 2000 p1/t1 clock_sync sync_id='abc',ph='c'\n"
                   "i 3000 p1 r [blink] process ph='R'\n"
                   "i 4000 p1/t1 x ph='(',id=4\n"
                   "i 5000 p1/t1 x ph=')'\n"
                   "i 6000 p1/t1 d dumps={},ph='v',id='0x1'\n"
                   "i 7000 p1/t1 d ph='V',id='0x1'\n"
                   "i 8000 p1/t1 ? ph='Z'\n"
                   "X 9000+1000 p1/t1 ?\n",
         .findings = "n 1 unknown phase, kept as an instant @436\n"
                     "n 1 phase of several letters, the first one counts @481\n",
         .meta = "clock_sync json {\"sync_id\":\"abc\"}\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(metadata_events)
{
    static const struct row rows[] = {
        {IN("[{'ph':'M','name':'process_name','pid':1,'tid':9,'args':{'name':'P'}},{'"
            "ph':'M','name':'thread_name','pid':1,'tid':2,'args':{'name':'T'}},{'ph':"
            "'M','name':'process_labels','pid':1,'args':{'labels':'l1,l2'}},{'ph':'M'"
            ",'name':'process_sort_index','pid':1,'args':{'sort_index':-3}},{'ph':'M'"
            ",'name':'thread_sort_index','pid':1,'tid':2,'args':{'sort_index':'7'}},{"
            "'ph':'M','name':'num_cpus','pid':1,'tid':2,'args':{'number':4}},{'ph':'M"
            "','name':'thread_name','pid':1,'tid':3,'args':{}},{'ph':'M','name':'proc"
            "ess_name','pid':1,'args':{'name':'P2'},'cat':'__metadata'}]"),
         .events = "", .findings = "D 1 metadata event without a usable value @424\n",
         .tracks = "p1 P2 order -3 desc l1,l2\n"
                   "p1/t2 T order 7\n"
                   "p1/t3\n",
         .meta = "metadata.num_cpus.1.2 json {\"number\":4}\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(forms)
{
    static const struct row rows[] = {
        {IN("{'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1}]}"), .events = "i 1000 p1/t1\n"},
        {IN("{'a':{'b':[1]},'displayTimeUnit':'ns','traceEvents':[{'ph':'i','pid':1,'"
            "tid':1,'ts':1}],'otherData':{'v':'1'},'n':5,'s':'te\\nxt'}"),
         .events = "i 1000 p1/t1\n",
         .meta = "chrome.a json {\"b\":[1]}\n"
                 "chrome.displayTimeUnit text ns\n"
                 "chrome.otherData json {\"v\":\"1\"}\n"
                 "chrome.n json 5\n"
                 "chrome.s text te\\nxt\n"},
        {IN("{'ph':'i','pid':1,'tid':1,'ts':1}\n"
            "{'ph':'i','pid':1,'tid':1,'ts':2}\n"),
         .events = "i 1000 p1/t1\n"
                   "i 2000 p1/t1\n"},
        {IN("[\n"
            "{'id':'0','name':'a','cat':'POSIX','pid':'7','tid':'7','ts':'5','dur':'2"
            "','ph':'X','args':{'f':1}}\n"
            "{'id':'1','name':'b','cat':'POSIX','pid':'7','tid':'7','ts':'9','dur':'2"
            "','ph':'X'}\n"),
         .events = "X 5000+2000 p7/t7 a [POSIX] f=1,id='0'\n"
                   "X 9000+2000 p7/t7 b [POSIX] id='1'\n",
         .findings = "n 1 one event a line, without commas @101\n"
                     "D 1 array without its closing bracket @185\n"},
        {IN("\357\273\277 [{'ph':'i','pid':1,'tid':1,'ts':1}]\n"), .events = "i 1000 p1/t1\n",
         .findings = "n 1 byte order mark @0\n"},
        {IN("[{'ph':'i','pid':1,'tid':1,'ts':1}]\n"
            "[{'ph':'i','pid':1,'tid':1,'ts':2}]{'traceEvents':[{'ph':'i','pid':1,'ti"
            "d':1,'ts':3}]}"),
         .events = "i 1000 p1/t1\n"
                   "i 2000 p1/t1\n"
                   "i 3000 p1/t1\n",
         .findings = "n 2 another document follows the first @36\n"},
        {IN("[]"), .events = ""},
        {IN("{'traceEvents':[],'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1}]}"),
         .events = "i 1000 p1/t1\n"},
        {IN("{'args':{'x':1,'ph':'q'},'dur':3,'cat':'c','name':'n','ts':1,'tid':2,'pi"
            "d':1,'ph':'X'}"),
         .events = "X 1000+3000 p1/t2 n [c] x=1,ph='q'\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(kineto_keys)
{
    static const struct row rows[] = {
        {IN("{'schemaVersion':1,'deviceProperties':[{'id':0}],'distributedInfo':{'bac"
            "kend':'nccl','rank':3,'world_size':8},'baseTimeNanoseconds':171196464600"
            "0000000,'traceEvents':[{'ph':'X','pid':0,'tid':7,'ts':1.001,'dur':2}]}"),
         .events = "X 1711964646000001001+2000 p0/t7\n",
         .meta = "chrome.schemaVersion json 1\n"
                 "chrome.deviceProperties json [{\"id\":0}]\n"
                 "rank text 3\n"
                 "world_size text 8\n"
                 "chrome.distributedInfo json {\"backend\":\"nccl\",\"rank\":3,\"world_size\":8}\n"
                 "chrome.baseTimeNanoseconds json 1711964646000000000\n"},
        {IN("{'traceEvents':[{'ph':'X','pid':0,'tid':7,'ts':1.001,'dur':2}],'baseTime"
            "Nanoseconds':'1711964646000000000'}"),
         .events = "X 1001+2000 p0/t7\n",
         .findings = "n 1 baseTimeNanoseconds after the events, kept as a clock snapshot @85\n",
         .meta = "chrome.baseTimeNanoseconds text 1711964646000000000\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(stacks)
{
    static const struct row rows[] = {
        {IN("{'stackFrames':{'1':{'name':'main'},'5':{'name':'leaf','parent':1},'7':{"
            "'name':'loop','parent':7}},'traceEvents':[{'ph':'X','pid':1,'tid':1,'ts'"
            ":1,'dur':1,'sf':5,'esf':'1'},{'ph':'B','pid':1,'tid':1,'ts':1,'stack':['"
            "a',1],'estack':['z']},{'ph':'i','pid':1,'tid':1,'ts':1,'sf':9}]}"),
         .events = "X 1000+1000 p1/t1 stack['main','leaf'],estack=['main']\n"
                   "B 1000 p1/t1 stack['a','1'],estack=['z']\n"
                   "i 1000 p1/t1 sf=9\n",
         .findings = "n 1 stack frame that is not described before its event, kept as its numb"
                     "er @276\n"
                     "D 1 begin without an end @173\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(times_and_numbers)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','pid':1,'tid':1,'ts':'x','dur':1},{'ph':'X','pid':1,'tid':1,'"
            "dur':1},{'ph':'X','pid':1,'tid':1,'ts':null},{'ph':'X','pid':1,'tid':1,'"
            "ts':null},{'ph':'X','pid':1,'tid':1,'ts':1,'dur':-5},{'ph':'X','pid':1,'"
            "tid':1,'ts':1,'dur':'z'},{'ph':'X','pid':1,'tid':1,'ts':0.0005,'dur':1e3"
            "},{'ph':'X','pid':1,'tid':1,'ts':'+1','dur':'5.'},{'ph':'X','pid':[],'ti"
            "d':{},'ts':1,'dur':0,'tts':'q'},{'ph':'X','pid':1.0,'tid':1.5,'ts':1,'du"
            "r':0},{'ph':'X','pid':null,'tid':null,'ts':1,'dur':0}]"),
         .events = "X 1000+0 p1/t1\n"
                   "X 1000+0 p1/t1\n"
                   "X 0+1000000 p1/t1\n"
                   "X 1000+5000 p1/t1\n"
                   "X 1000+0 p0/t0\n"
                   "X 1000+0 p1/t1\n"
                   "X 1000+0 p0/t0\n",
         .findings = "D 4 event without a usable time skipped @1\n"
                     "D 1 negative duration, taken as 0 @154\n"
                     "D 1 unusable duration, taken as 0 @197\n"
                     "n 1 time with a part below a nanosecond, rounded @272\n"
                     "D 2 number not in JSON's form @321\n"
                     "D 1 unusable thread time @387\n"
                     "D 3 pid or tid that is neither number nor text @354\n"
                     "n 2 event without a pid, put on process 0 @338\n"
                     "n 3 event without a tid, put on the process's first thread @338\n"},
        {IN("[{'ph':'X','pid':1,'tid':1,'ts':1712195495519689.047,'dur':9007199254740"
            ".993},{'ph':'X','pid':1,'tid':1,'ts':'-5.5','dur':0,'tts':1.5,'tdur':'2'"
            "},{'ph':'X','pid':1,'tid':1,'ts':1.0015,'dur':1.0025},{'ph':'X','pid':1,"
            "'tid':1,'ts':9223372036854775.806,'dur':1E-3},{'ph':'X','pid':1,'tid':1,"
            "'ts':9223372036854775.807,'dur':0}]"),
         .events = "X 1712195495519689047+9007199254740993 p1/t1\n"
                   "X -5500+0 p1/t1 tts 1500,tdur 2000\n"
                   "X 1002+1002 p1/t1\n"
                   "X 9223372036854775806+1 p1/t1\n"
                   "X 9223372036854775807+0 p1/t1\n",
         .findings = "n 2 time with a part below a nanosecond, rounded @177\n"},
        {IN("[{'ph':'i','pid':1,'tid':1,'ts':1,'args':{'a':9007199254740993,'b':-9223"
            "372036854775808,'c':9223372036854775808,'d':18446744073709551616,'e':1e3"
            ",'f':-0,'g':0.1,'h':1.5E+2,'i':123456789012345,'j':1234567890123456,'k':"
            "-7,'l':00,'m':1.}}]"),
         .events = "i 1000 p1/t1 a=9007199254740993,b=-9223372036854775808,c=922337203685477"
                   "5808u,d=1.8446744073709552e+19d,e=1000d,f=0,g=0.10000000000000001d,h=150"
                   "d,i=123456789012345,j=1234567890123456,k=-7,l=0,m=1d\n",
         .findings = "D 2 number not in JSON's form @223\n"
                     "n 1 integer past 64 bits, kept as a double @116\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(pids_and_tids)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':5,'cat':null,'pid':'foo','tid':'bar','ts':1,'dur':1,'a"
            "rgs':'__stripped__'},{'ph':'X','name':{'a':1},'pid':'foo','tid':'12','ts"
            "':1,'dur':1,'args':[1,2]},{'ph':'M','name':'process_name','pid':'foo','a"
            "rgs':{'name':'better'}}]"),
         .events = "X 1000+1000 p*/t* 5 args='__stripped__'\n"
                   "X 1000+1000 p*/t12 name={a=1},args=[1,2]\n",
         .tracks = "p*/t* bar\n"
                   "p* better\n"
                   "p*/t12\n"},
        {IN("[{'ph':'X','pid':12345678901,'tid':-7,'ts':1,'dur':0},{'ph':'X','pid':4,"
            "'ts':1,'dur':0},{'ph':'X','ts':1,'dur':0},{'ph':'i','s':'p','ts':1},{'ph"
            "':'X','pid':'','tid':'','ts':1,'dur':0}]"),
         .events = "X 1000+0 p12345678901/t-7\n"
                   "X 1000+0 p4/t4\n"
                   "X 1000+0 p0/t0\n"
                   "i 1000 p0 process\n"
                   "X 1000+0 p-881887378/t-881887378\n",
         .findings = "n 2 event without a tid, put on the process's first thread @54\n"
                     "n 2 event without a pid, put on process 0 @88\n",
         .tracks = "p12345678901/t-7\n"
                   "p12345678901\n"
                   "p4/t4\n"
                   "p4\n"
                   "p0/t0\n"
                   "p0\n"
                   "p-881887378/t-881887378\n"
                   "p-881887378\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(duplicate_keys)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','pid':1,'tid':1,'ts':1,'dur':1,'ph':'B','args':{'a':1},'args'"
            ":{'b':1,'b':{'b':1,'c':[1]},'b':3,'d':{'a':1},'a':2},'x':1,'x':2}]"),
         .events = "B 1000 p1/t1 b=3,d={a=1},a=2,x=2,dur_ns=1000\n",
         .findings = "n 5 key given twice, the last one counts @47\n"
                     "D 1 begin without an end @1\n"},
        {IN("[{'ph':'i','pid':1,'tid':1,'ts':1,'args':{'a':{'x':1},'b':{'a':5,'a':[1,"
            "[2]]},'a':2,'c':[{'c':1},{'c':2}],'b':{'z':1}}}]"),
         .events = "i 1000 p1/t1 a=2,c=[{c=1},{c=2}],b={z=1}\n",
         .findings = "n 3 key given twice, the last one counts @65\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(missing_ends)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 array without its closing bracket @53\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 array without its closing bracket @54\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},{'ph':'X','name':'"
            "b','pid':1,'tid':1,'ts':2,'du"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 event cut short by the end of the input, skipped @54\n"
                     "D 1 array without its closing bracket @101\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1,'args':{'a':{'b':[1"
            ",2"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 event cut short by the end of the input, kept in part @1\n"
                     "D 1 array without its closing bracket @74\n"},
        {IN("{'traceEvents':[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 input ends before the trace does @69\n"},
        {IN("{'traceEvents':[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}],'o"
            "therData':{'a':1"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 input ends before the trace does @70\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(commas)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},]"),
         .events = "X 1000+1000 p1/t1 a\n", .findings = "D 1 comma too many @54\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1,},{'ph':'X','name':"
            "'b','pid':1,'tid':1,'ts':2,'dur':1,'args':{'x':[1,2,],}}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 2000+1000 p1/t1 b x=[1,2]\n",
         .findings = "D 3 comma too many @53\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},,{'ph':'X','name':"
            "'b','pid':1,,'tid':1,'ts':2,'dur':1,'args':{'x':[1,,2]}}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 2000+1000 p1/t1 b x=[1,2]\n",
         .findings = "D 3 comma too many @54\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}{'ph':'X','name':'b"
            "' 'pid':1,'tid':1,'ts':2,'dur':1,'args':{'x':[1 2],'y':[{}{}] 'z':1}}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 2000+1000 p1/t1 b x=[1,2],y=[{},{}],z=1\n",
         .findings = "D 5 missing comma @53\n"},
        {IN("[{'ph':'i','pid':1,'tid':1,'ts':1},{'ph':'i','pid':1,'tid':1,'ts':2}\n"
            "{'ph':'i','pid':1,'tid':1,'ts':3}]"),
         .events = "i 1000 p1/t1\n"
                   "i 2000 p1/t1\n"
                   "i 3000 p1/t1\n",
         .findings = "D 1 missing comma @69\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(bare_words)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1,'args':{'n':NaN,'i'"
            ":Infinity,'m':-Infinity,'na':N/A,'h':0x1F,'none':None,'t':True,'e':,'z':"
            "}}]"),
         .events = "X 1000+1000 p1/t1 a n=nand,i=infd,m=-infd,na='N/A',h='0x1F',none=null,t="
                   "true,e=null,z=null\n",
         .findings = "D 7 bare word as a value @65\n"
                     "D 2 key without a value @139\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(strings_that_are_not_json)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'say 'hi' now','pid':1,'tid':1,'ts':1,'dur':1,'args':{"
            "'q':'a 'b', c','r':['x 'y' z','w']}}]"),
         .events = "X 1000+1000 p1/t1 say \"hi\" now q='a \"b\", c',r=['x \"y\" z','w']\n",
         .findings = "D 3 unescaped quote in a string @23\n"},
        {IN("[{'ph':'X','name':'bad \377 utf','pid':1,'tid':1,'ts':1,'dur':1,'args':{'s'"
            ":'\\ud83d lone','t':'\\ud83d\\ude00','e':'\\q','u':'\\u12'}}]"),
         .events = "X 1000+1000 p1/t1 bad \\xff utf s='\357\277\275 "
                   "lone',t='\360\237\230\200',e='\\\\q',u='\\\\u12'\n",
         .findings = "D 1 invalid UTF-8, kept as it is @19\n"
                     "D 2 unknown escape in a string, kept as it is @111\n"
                     "D 1 half a surrogate pair, replaced by U+FFFD @74\n"},
        {IN("[{'ph':'X','name':'say 'hi' now','pid':1,'tid':1,'ts':1,'dur':1,'cname':"
            "'x'y','args':{'q':'a 'b' c','r':['x 'y' z','w'],'e':''q'','n':{'d':'x 'y"
            "' z'}}}]"),
         .events = "X 1000+1000 p1/t1 say \"hi\" now cname='x\"y',q='a \"b\" c',r=['x \"y\" z','w']"
                   ",e='\"q\"',n={d='x \"y\" z'}\n",
         .findings = "D 6 unescaped quote in a string @23\n"},
        {IN("[{'ph':'X','name':'a\000b\n"
            "c','pid':1,'tid':1,'ts':1,'dur':1,'args':{'a':'b'c'}},{'ph':'X','name':'"
            "q'ts':1},{'ph':'X','name':'b','pid':1,'tid':1,'ts':1,'dur':1}]"),
         .events = "X 1000+1000 p1/t1 a\\x00b\\nc a='b\"c'\n"
                   "X 1000+1000 p1/t1 b\n",
         .findings = "D 1 raw control character in a string @19\n"
                     "D 1 unescaped quote in a string @71\n"
                     "D 1 damaged event skipped @77\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(torn_records)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},{'ph':'X','name':'"
            "torn','ts':2{'ph':'X','name':'b','pid':1,'tid':1,'ts':3,'dur':1}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 3000+1000 p1/t1 b\n",
         .findings = "D 1 damaged event skipped @54\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},{'name':'to{'ph':'"
            "X','name':'b','pid':1,'tid':1,'ts':3,'dur':1},{'ph':'X','name':'c','pid'"
            ":1,'tid':1,'ts':4,'dur':1}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 3000+1000 p1/t1 b\n"
                   "X 4000+1000 p1/t1 c\n",
         .findings = "D 1 damaged event skipped @54\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}]'name':'torn','ph'"
            ":'X'},{'ph':'X','name':'b','pid':1,'tid':1,'ts':3,'dur':1}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 3000+1000 p1/t1 b\n",
         .findings = "D 1 bytes that belong to no event @54\n"},
        {IN("{'traceEvents':[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},{'p"
            "h':'X','args':{'l':[{'q':1},{'r':2 ],'displayTimeUnit':'ns','traceName':"
            "'t'}"),
         .events = "X 1000+1000 p1/t1 a\n", .findings = "D 1 damaged event skipped @69\n",
         .meta = "chrome.displayTimeUnit text ns\n"
                 "chrome.traceName text t\n"},
        {IN("{'traceEvents':[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},{'p"
            "h':'X','ts':5,'dur':2,'args':{'l':[1,2}},{'ph':'X','name':'b','pid':1,'t"
            "id':1,'ts':3,'dur':1}],'displayTimeUnit':'ns'}"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 5000+2000 p0/t0\n"
                   "X 3000+1000 p1/t1 b\n",
         .findings = "D 1 damaged event kept in part @69\n"
                     "n 1 event without a pid, put on process 0 @69\n"
                     "n 1 event without a tid, put on the process's first thread @69\n",
         .meta = "chrome.displayTimeUnit text ns\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}]\000\000'name':'torn','p"
            "h':'X'},\n"
            "{'ph':'X','name':'b\001c','pid':1,\000'tid':1,'ts':3,'dur':1}\000,\000{'ph':'X','nam"
            "e':'c','pid':1,'tid':1,'ts':3,'dur':1\000}]\000\000\000"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 3000+1000 p1/t1 b\\x01c\n"
                   "X 3000+1000 p1/t1 c\n",
         .findings = "D 9 NUL byte between values @54\n"
                     "D 1 bytes that belong to no event @56\n"
                     "D 1 raw control character in a string @99\n"},
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1,'args':{'l':[1,2,{'"
            "ph':'X','name':'b','pid':1,'tid':1,'ts':3,'dur':1},{'ph':'X','name':'c',"
            "'pid':1,'tid':1,'ts':4,'dur':1}]"),
         .events = "X 1000+1000 p1/t1 a l=[1,2,{ph='X',name='b',pid=1,tid=1,ts=3,dur=1},{ph="
                   "'X',name='c',pid=1,tid=1,ts=4,dur=1}]\n"
                   "X 3000+1000 p1/t1 b\n"
                   "X 4000+1000 p1/t1 c\n",
         .findings = "D 1 event cut short by the end of the input, kept in part @1\n"},
        {IN("{'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1},{'ph':'i','pid':1,'t]]"
            ",'displayTimeUnit':'ms'}"),
         .events = "i 1000 p1/t1\n", .findings = "D 1 damaged event skipped @50\n",
         .meta = "chrome.displayTimeUnit text ms\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(things_that_are_no_events)
{
    static const struct row rows[] = {
        {IN("[{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1},null,5,'x',[{'ph':"
            "'X','name':'b','pid':1,'tid':1,'ts':3,'dur':1}],{},{'a':1}]"),
         .events = "X 1000+1000 p1/t1 a\n"
                   "X 3000+1000 p1/t1 b\n",
         .findings = "D 3 element that is not an event @54\n"
                     "D 2 bytes that belong to no event @65\n"},
        {IN("garbage{'ph':'X','name':'a','pid':1,'tid':1,'ts':1,'dur':1}"),
         .events = "X 1000+1000 p1/t1 a\n",
         .findings = "D 1 bytes that belong to no event @0\n"
                     "D 1 array without its closing bracket @59\n"},
        {IN("{'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1}]}}}}"), .events = "i 1000 p1/t1\n",
         .findings = "D 1 bytes that belong to no event @51\n"},
        {IN("[{'ph':'i','pid':1,'tid':1,'ts':1},{'name':'x','args':{'a':1}},{}]"),
         .events = "i 1000 p1/t1\n",
         .findings = "D 1 event without a phase skipped @35\n"
                     "n 1 empty event @63\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

/* ---- files of Stave's own ---- */

TEST(own_files_give_back_their_tracks_flows_and_clocks)
{
    static const struct row rows[] = {
        {IN("{'otherData':{'stave':{'version':'0.1.0','clock':6,'snapshots':[{'readings':[[6,5],[1,"
            "1700000000000000000]],'uncertainty_ns':7}]},'host':'h'},'traceEvents':["
            "{'ph':'M','name':'process_name','pid':1,'args':{'name':'P'}},"
            "{'ph':'M','name':'thread_name','pid':1,'tid':900,'args':{'name':'S','uuid':'0xabc','"
            "kind':'stream','order':4}},"
            "{'ph':'M','name':'thread_name','pid':1,'tid':901,'args':{'name':'x','uuid':'0xabd','"
            "parent':'0xabc',"
            "'kind':'counter','track_name':'cnt','unit':'bytes','cat':'k'}},"
            "{'ph':'X','name':'a','pid':1,'tid':900,'ts':1,'dur':1,'args':{'k':1,'stave.flow':['"
            "0x1','begin 0x2','end "
            "0x3'],'correlation':[5,6],'stave.source':{'file':'f.c','line':3}}},"
            "{'ph':'s','cat':'stave.flow','name':'f','id':'0x1','pid':1,'tid':900,'ts':1},"
            "{'ph':'s','cat':'c','name':'f','id':'0x2','pid':1,'tid':2,'ts':1},"
            "{'ph':'C','name':'cnt','pid':1,'tid':901,'ts':2,'args':{'v':3}},"
            "{'ph':'b','cat':'z','name':'op','id':'0x77','pid':1,'tid':2,'ts':3},"
            "{'ph':'e','cat':'y','name':'op','id':'0x77','pid':1,'tid':2,'ts':4},"
            "{'ph':'i','cat':'stave.loss,net','name':'ring "
            "full','pid':1,'tid':2,'ts':5,'args':{'count':9,'span_ns':4}}"
            "],'stave':{'meta':{'late':'m'}}}"),
         .events =
             "X 1000+1000 p1/stream:S a k=1,~#1,>#2,<#3,corr 5,corr 6,source{file='f.c',line=3}\n"
             "f 1000 p1/t2 f [c] >#2\n"
             "C 2000 p1/stream:S/counter:cnt 3\n"
             "B 3000 p1/async:op op [z]\n"
             "E 4000 p1/async:op\n"
             "L 5000+4 p1/t2 ring full [net] 9\n",
         .tracks =
             "p1 P\np1/stream:S order 4\np1/stream:S/counter:cnt unit bytes\np1/t2\np1/async:op\n",
         .meta = "host text h\nlate text m\n"},
        {IN("[{'ph':'M','name':'stave','pid':0,'tid':0,'args':{'version':1,'clock':1,'"
            "baseTimeNanoseconds':1700000000000000000,"
            "'meta':{'chrome.displayTimeUnit':'ns','j':[1]}}},"
            "{'ph':'M','name':'process_name','pid':1073741824,'tid':1073741824,'args':{'name':'"
            "global','uuid':'0x0'}},"
            "{'ph':'M','name':'thread_name','pid':1073741824,'tid':5,'args':{'name':'G','uuid':'"
            "0x9','kind':'custom'}},"
            "{'ph':'M','name':'process_name','pid':1073741826,'args':{'name':'g','uuid':'0x20','"
            "kind':'gpu','track_name':''}},"
            "{'ph':'M','name':'thread_name','pid':1073741826,'tid':6,'args':{'name':'x','uuid':'"
            "0x21','kind':'thread','pid':7,"
            "'tid':8}},"
            "{'ph':'M','name':'thread_sort_index','pid':1073741826,'tid':6,'args':{'sort_index':1,'"
            "order':5}},"
            "{'ph':'i','name':'a','pid':1073741824,'tid':5,'ts':1,'s':'g'},"
            "{'ph':'E','name':'kept','cat':'k','pid':1073741826,'tid':6,'ts':2}"),
         .events =
             "i 1700000000000001000 custom:G a global\nE 1700000000000002000 gpu:/t8 kept [k]\n",
         .findings = "D 1 array without its closing bracket @835\n",
         .tracks = "custom:G\ngpu:\ngpu:/t8 x order 5\n",
         .meta = "chrome.displayTimeUnit text ns\nj json [1]\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
    struct chrome_text_result r;
    char *json = quoted(rows[0].in, rows[0].len);
    chrome_text_read(json, rows[0].len, 0, 0, &r);
    CHECK_UINT_EQ(r.clocks.trace_clock, SV_CLOCK_BOOTTIME);
    CHECK_UINT_EQ(r.clocks.n, 1);
    CHECK_INT_EQ(r.base_snapshot_ns, 1700000000000000000);
    chrome_text_free(&r);
    free(json);
}

/* ---- clocks, spaces, errors ---- */

TEST(base_time_before_the_events_is_the_wall_clock)
{
    static const struct {
        const char *json;
        uint32_t clock;
        size_t n_snapshots;
        int64_t base;
    } rows[] = {
        {"{'baseTimeNanoseconds':1711964646000000000,'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':"
         "1}]}",
         SV_CLOCK_REALTIME, 0, 0},
        {"{'traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1}],'baseTimeNanoseconds':"
         "1711964646000000000}",
         SV_CLOCK_UNKNOWN, 1, 1711964646000000000},
        {"{'baseTimeNanoseconds':'x','traceEvents':[{'ph':'i','pid':1,'tid':1,'ts':1}]}",
         SV_CLOCK_UNKNOWN, 0, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct chrome_text_result r;
        char *json = quoted(rows[i].json, strlen(rows[i].json));
        chrome_text_read(json, strlen(json), 0, 0, &r);
        CONTEXT("row %zu", i);
        CHECK_UINT_EQ(r.clocks.trace_clock, rows[i].clock);
        CHECK_UINT_EQ(r.clocks.n, rows[i].n_snapshots);
        CHECK_INT_EQ(r.base_snapshot_ns, rows[i].base);
        chrome_text_free(&r);
        free(json);
    }
}

TEST(what_is_no_trace_is_an_error)
{
    static const char *const rows[] = {
        "", " \n", "hello", "{}", "{'traceEvents':5}", "{'a':[1,2]}", "\\", "'", "}"};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct chrome_text_result r;
        char *json = quoted(rows[i], strlen(rows[i]));
        chrome_text_read(json, strlen(json), 0, 0, &r);
        CONTEXT("%s", rows[i]);
        CHECK_INT_EQ(r.rc, SV_EFORMAT);
        CHECK_UINT_EQ(r.n_events, 0);
        chrome_text_free(&r);
        free(json);
    }
}

TEST(probe_tells_traces_from_other_files)
{
    static const struct {
        const char *head;
        int at_least, at_most;
    } rows[] = {{"{\"traceEvents\":[", 100, 100},
                {"\xef\xbb\xbf\n {\"schemaVersion\":1,\"traceEvents\":[", 100, 100},
                {"[{\"name\":\"a\",\"ph\":\"X\"", 90, 100},
                {"{\"name\":\"a\",\"ph\":\"X\"", 80, 100},
                {"[]", 1, 50},
                {"{\"a\":1}", 1, 50},
                {"", 0, 0},
                {"\x0a\x1b\x10", 0, 0},
                {"hello", 0, 0},
                {"ame\":\"a\",\"ph\":\"X\",\"ts\":1}", 1, 50}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int sure = sv_chrome_format.probe((const uint8_t *)rows[i].head, strlen(rows[i].head));
        CONTEXT("%s", rows[i].head);
        CHECK(sure >= rows[i].at_least && sure <= rows[i].at_most);
    }
}

/* ---- a second reader ---- */

static char *command_output(const char *command, size_t *len)
{
    FILE *f = popen(command, "r");
    char *text = malloc((size_t)1 << 24);
    *len = f ? fread(text, 1, ((size_t)1 << 24) - 1, f) : 0;
    text[*len] = 0;
    CHECK(f && pclose(f) == 0);
    return text;
}

TEST(agrees_with_pythons_json_on_random_files)
{
    if (system("python3 -c 'import json' >/dev/null 2>&1") != 0)
        SKIP("python3 is not installed");
    for (int seed = 1; seed <= 5; seed++) {
        char command[1024];
        size_t len, expected_len;
        const char *path = test_scratch("random.json");
        snprintf(command, sizeof command, "python3 '%s' --make %d 100",
                 test_source("tests/unit/chrome_expected.py"), seed);
        char *json = command_output(command, &len);
        FILE *f = fopen(path, "w");
        REQUIRE(f && fwrite(json, 1, len, f) == len && fclose(f) == 0);
        snprintf(command, sizeof command, "python3 '%s' '%s'",
                 test_source("tests/unit/chrome_expected.py"), path);
        char *expected = command_output(command, &expected_len);
        for (size_t piece = 0; piece < 1000; piece += 499) {
            struct chrome_text_result r;
            CONTEXT("seed %d, piece %zu", seed, piece);
            chrome_text_read(json, len, piece, 0, &r);
            CHECK_STR_EQ(sv_buf_cstr(&r.events), expected);
            chrome_text_free(&r);
        }
        free(json);
        free(expected);
    }
}
