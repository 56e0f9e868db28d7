# shellcheck shell=bash disable=SC2154,SC2034
# Sourced by `programs`: the requirements of each program, and its work, which writes to standard output.
# `many WHOLE SHORT` prints one of both, and "$tree" has sources. `NAME_files` prints the paths of files
# that the work leaves, in which no time or random number is. `NAME_process` is a pattern for the file
# name of the executable if that is not NAME.

# Returns whether all of these programs are installed; `command -v` returns whether any of them is.
has_all() {
    local program
    for program in "$@"; do command -v "$program" > /dev/null || return 1; done
}

gcc_process='cc1plus'
gcc_files() { echo one.o; }
gcc_needs() { command -v g++ > /dev/null; }
gcc_work() {
    local file
    for file in $(many "lib/base/text.cpp lib/platform/fail.cpp" lib/platform/fail.cpp); do
        g++ -std=c++20 -O2 -g0 -I"$tree/include" -I"$tree/lib" -c "$tree/$file" -o one.o &&
            md5sum < one.o
    done
}

git_files() { git -C one ls-files | sed 's|^|one/|'; }
git_needs() { command -v git > /dev/null; }
git_work() {
    rm -rf one && git init -q one && cd one || return
    git config user.name nobody && git config user.email nobody@localhost
    cp -r "$tree/lib" "$tree/include" . && git add . &&
        GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000' git commit -q -m all &&
        git gc -q && git fsck --no-progress && git log --stat --format=%H | md5sum &&
        git grep -c noexcept | md5sum
    cd ..
}

python_modules="test_json test_re test_dict test_list test_bytes test_io test_threading test_fork1 \
    test_mmap test_zlib test_pickle test_sqlite3 test_ctypes test_thread test_gc"
python_process='python3.*'
python_needs() { $debian_python -c 'import test.test_dict' 2> /dev/null; }
python_work() {
    $debian_python -m test $(many "$python_modules" "test_dict test_zlib") > python.log 2>&1
    local code=$?
    [ $code = 0 ] || tail -30 python.log >&2
    echo "python: $code"
}

sqlite_process='sqlite3'
sqlite_files() { echo one.db; }
sqlite_needs() { command -v sqlite3 > /dev/null; }
sqlite_work() {
    rm -f one.db
    sqlite3 one.db "create table t(a integer primary key, b text, c real);
        with recursive n(x) as (select 1 union all select x + 1 from n where x < $(many 300000 20000))
            insert into t select x, printf('%d-%x', x * 7919 % 100003, x * x), x / 7.0 from n;
        create index i on t(b); select count(*), sum(length(b)), max(b) from t;
        select b from t order by b desc limit 5; delete from t where a % 3 = 0; vacuum;
        select count(*), round(sum(c)) from t; pragma integrity_check;"
}

redis_process='redis-.*'
redis_needs() { has_all redis-server redis-benchmark redis-cli; }
redis_work() {
    redis-server --port 0 --unixsocket "$folder/redis" --save '' --dir "$folder" > redis.log 2>&1 &
    local server=$! tries=0
    until redis-cli -s "$folder/redis" ping > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] && kill -0 $server 2> /dev/null || { cat redis.log >&2; return 1; }
        sleep 0.1
    done
    redis-benchmark -s "$folder/redis" -q -n "$(many 40000 500)" -c 20 -P 8 -r 5000 \
        -t set,get,incr,lpush,rpop,sadd,hset,lrange_100,mset > bench.log 2>&1 || cat bench.log >&2
    redis-benchmark -s "$folder/redis" -q -n "$(many 500 20)" -c 5 -d 300000 -t set,get > /dev/null 2>&1
    redis-cli -s "$folder/redis" eval 'for i = 1, 1000 do redis.call("set", "k" .. i, string.rep("v", i)) end
        return redis.call("strlen", "k500")' 0
    redis-cli -s "$folder/redis" bgsave > /dev/null; redis-cli -s "$folder/redis" strlen k1000
    redis-cli -s "$folder/redis" shutdown nosave
    wait $server; echo "redis: $?"
}

imagemagick_process='convert-im6.*'
imagemagick_needs() { [ -x /usr/bin/convert-im6.q16 ]; }
imagemagick_work() {
    /usr/bin/convert-im6.q16 -size "$(many 1200x900 300x200)" gradient:red-blue -swirl 90 -blur 0x3 \
        -rotate 30 -resize 60% rgb:- | md5sum
}

sort_needs() { has_all sort awk; }
sort_work() {
    awk -v n="$(many 400000 30000)" 'BEGIN { for (i = 0; i < n; ++i) print (i * 7919) % 1000003, i }' |
        LC_ALL=C sort --parallel=4 -S 64M | md5sum
}

xz_files() { echo one.tar; }
xz_needs() { command -v xz > /dev/null; }
xz_work() {
    tar cf one.tar --sort=name --mtime=@0 --owner=0 --group=0 -C "$tree" lib include
    xz -T2 -"$(many 6 1)" < one.tar | xz -dc | cmp - one.tar && echo same
}

perl_needs() { command -v perl > /dev/null; }
perl_work() {
    perl -e 'my %h; $h{$_ * 7919 % 100003} = "x" x ($_ % 300) for 1 .. shift; my $s = 0;
        $s += length $h{$_} for sort keys %h; print "$s\n"; print length("y" x 50_000_000), "\n";' \
        "$(many 300000 20000)"
}

bash_needs() { true; }
bash_work() {
    bash -c 'declare -A a; for ((i = 0; i < $1; ++i)); do a[$((i * 31 % 997))]+=x; done
        echo ${#a[@]} $(echo "${a[@]}" | wc -c) $(for i in 1 2 3 4 5; do (echo $i | cat); done)' \
        bash "$(many 100000 3000)"
}

clang_process='clang.*'
clang_files() { echo one.o; }
clang_needs() { command -v clang > /dev/null; }
clang_work() {
    clang -std=c11 -O2 -g0 -x c -c -o one.o - <<< "$(sed 's/^/int f/; s/$/(int a) { return a * 3; }/' <(seq "$(many 2000 200)"))" &&
        md5sum < one.o
}

tar_files() { find out -type f; }
tar_needs() { command -v tar > /dev/null; }
tar_work() {
    tar cf one.tar --sort=name --mtime=@0 --owner=0 --group=0 -C "$tree" lib && md5sum < one.tar
    rm -rf out && mkdir out && tar xf one.tar -C out && find out -type f | sort | xargs cat | md5sum
}

make_needs() { command -v make > /dev/null; }
make_work() {
    seq "$(many 2000 100)" | awk '{ print "t" $1 ": t" $1 - 1 "\n\t@echo $@ $(words $^)" } END { print "t0:" }' > one.mk
    make -s -j2 -f one.mk "t$(many 2000 100)" | md5sum
}

awk_process='[mg]?awk'
awk_needs() { command -v awk > /dev/null; }
awk_work() {
    awk -v n="$(many 300000 20000)" 'BEGIN { for (i = 0; i < n; ++i) a[i * 7919 % 10007] = a[i * 7919 % 10007] i % 10
        for (k in a) s += length(a[k]); print s, length(a) }'
}

vim_process='vim.*'
vim_files() { echo one.txt; }
vim_needs() { command -v vim > /dev/null; }
vim_work() {
    seq "$(many 20000 2000)" > one.txt
    vim -es -u NONE -i NONE -c '%s/\(\d\)\(\d\)/\2-\1/ge' -c 'g/7/d' -c 'sort! n' -c 'wq' one.txt < /dev/null
    md5sum < one.txt
}

node_process='node(js)?'
node_needs() { command -v node > /dev/null; }
node_work() {
    node -e 'const m = new Map(); for (let i = 0; i < +process.argv[1]; ++i) m.set("k" + i % 5000, Buffer.alloc(i % 3000, i % 251));
        const h = require("crypto").createHash("sha256"); for (const [k, b] of m) h.update(k).update(b);
        console.log(h.digest("hex"), require("zlib").gzipSync(Buffer.alloc(1e6, 7)).length);
        new (require("worker_threads").Worker)("console.log([...Array(1000).keys()].reduce((a, b) => a + b))", { eval: true });' \
        "$(many 60000 6000)"
}

openssl_needs() { command -v openssl > /dev/null; }
openssl_work() {
    seq "$(many 200000 20000)" | openssl enc -aes-256-cbc -K 00 -iv 00 2> /dev/null | openssl dgst -sha512
    openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem 2> /dev/null
    openssl req -x509 -new -key key.pem -subj /CN=localhost -days 1 -out cert.pem && openssl verify -CAfile cert.pem cert.pem
}

cmake_files() { find project/build -name '*.make' -o -name Makefile; }
cmake_needs() { command -v cmake > /dev/null; }
cmake_work() {
    rm -rf project && mkdir project && seq "$(many 300 30)" |
        awk 'BEGIN { print "cmake_minimum_required(VERSION 3.20)\nproject(p NONE)" }
             { print "add_custom_target(t" $1 " COMMAND ${CMAKE_COMMAND} -E echo " $1 ")" }' > project/CMakeLists.txt
    cmake -S project -B project/build > /dev/null && ls project/build/CMakeFiles | md5sum
}

nginx_needs() { has_all nginx curl; }
nginx_work() {
    mkdir -p site && seq "$(many 50000 5000)" > site/numbers
    cat > nginx.conf <<< "daemon off; error_log stderr; pid $folder/nginx.pid; worker_processes 2; user root;
        events { } http { access_log off; gzip on; gzip_types *; server { listen unix:$folder/nginx; root $folder/site; } }"
    nginx -p "$folder" -c "$folder/nginx.conf" 2> nginx.log &
    local server=$! tries=0 i
    until [ -S "$folder/nginx" ]; do
        tries=$((tries + 1)); [ $tries -lt 100 ] || { cat nginx.log >&2; return 1; }; sleep 0.1
    done
    for i in $(seq "$(many 100 10)"); do curl -s --compressed --unix-socket nginx http://localhost/numbers; done | md5sum
    curl -s -o /dev/null -w '%{http_code}\n' --unix-socket nginx http://localhost/missing
    kill -QUIT $server; wait $server; echo "nginx: $?"; rm -f nginx
}

ffmpeg_needs() { command -v ffmpeg > /dev/null; }
ffmpeg_work() {
    ffmpeg -v error -f lavfi -i "testsrc=size=320x240:rate=25:duration=$(many 4 1)" -f lavfi -i "sine=duration=$(many 4 1)" \
        -c:v mpeg4 -c:a flac -threads 2 -bitexact -f matroska - | md5sum
}

gzip_needs() { command -v gzip > /dev/null; }
gzip_work() { seq "$(many 500000 50000)" | gzip -n9 | gunzip | md5sum; }

zstd_needs() { command -v zstd > /dev/null; }
zstd_work() { seq "$(many 500000 50000)" | zstd -q -T2 -12 | zstd -qd | md5sum; }

bzip2_needs() { command -v bzip2 > /dev/null; }
bzip2_work() { seq "$(many 300000 30000)" | bzip2 -9 | bunzip2 | md5sum; }

grep_needs() { command -v grep > /dev/null; }
grep_work() { grep -rhoE '[a-z_]+_bytes' "$tree/lib" | sort | uniq -c | md5sum; grep -rcP '(?<=std::)\w+' "$tree/include" | sort | md5sum; }

diff_process='diff|patch'
diff_files() { printf '%s\n' a.txt one.patch; }
diff_needs() { has_all diff patch; }
diff_work() {
    seq "$(many 50000 5000)" > a.txt; awk 'NR % 7 { print $1 * (NR % 13 == 0 ? 2 : 1) }' a.txt > b.txt
    diff -u --label a --label b a.txt b.txt > one.patch; md5sum < one.patch; patch -s a.txt one.patch && cmp a.txt b.txt && echo same
}

jq_needs() { command -v jq > /dev/null; }
jq_work() { jq -n --argjson n "$(many 100000 5000)" '[range($n) | {k: "\(. % 97)", v: .}] | group_by(.k) | map({(.[0].k): (map(.v) | add)}) | add | tojson | length'; }

curl_needs() { command -v curl > /dev/null; }
curl_work() { cat "$tree"/lib/*/*.cpp > one.txt; curl -s "file://$folder/one.txt" | md5sum; curl --version | wc -l; }

bc_needs() { command -v bc > /dev/null; }
bc_work() { BC_LINE_LENGTH=0 bc -l <<< "scale = $(many 1000 200); 4 * a(1); 2 ^ 5000 % 10007"; }

gdb_needs() { command -v gdb > /dev/null; }
gdb_work() { gdb -nx -batch -ex 'info functions ^mai' -ex 'disassemble main' /bin/true 2>&1 | tail -3 | wc -l; }

gpg_needs() { command -v gpg > /dev/null; }
gpg_work() {
    mkdir -p -m 700 gpg; seq "$(many 100000 10000)" > one.txt
    gpg --homedir "$folder/gpg" --batch --quiet --print-md SHA512 one.txt
    gpg --homedir "$folder/gpg" --batch --quiet --enarmor < one.txt | gpg --homedir "$folder/gpg" --batch --quiet --dearmor | cmp - one.txt && echo same
}

file_needs() { command -v file > /dev/null; }
file_work() { file -b /bin/* /usr/lib/x86_64-linux-gnu/libc.so.6 2> /dev/null | sed -n "1,$(many 1000 100)p" | md5sum; }

objdump_process='.*-(objdump|nm)'
objdump_needs() { command -v objdump > /dev/null; }
objdump_work() { objdump -d -C "$(many /usr/bin/python3.11 /bin/true)" 2> /dev/null | tail -n +4 | md5sum; nm -D -C /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | md5sum; }

clang_format_process='clang-format.*'
clang_format_needs() { command -v clang-format > /dev/null; }
clang_format_work() { clang-format --style=LLVM "$tree/lib/$(many pool base)"/*.cpp | md5sum; }

java_files() { echo One.class; }
java_needs() { has_all java javac; }
java_work() {
    cat > One.java <<< 'public class One { static int n; public static void main(String[] a) throws Exception {
        var m = new java.util.HashMap<Integer, byte[]>(); for (int i = 0; i < Integer.parseInt(a[0]); ++i) m.put(i % 500, new byte[i % 5000]);
        var b = java.nio.ByteBuffer.allocateDirect(1 << 20); b.put(5, (byte) 7); Object none = null;
        try { none.toString(); } catch (NullPointerException e) { n = 1; }
        System.out.println(m.size() + " " + b.get(5) + " " + n); } }'
    javac One.java && java -Xmx256m One "$(many 100000 10000)"
}

tcl_process='tclsh.*'
tcl_needs() { command -v tclsh > /dev/null; }
tcl_work() { tclsh <<< "set d {}; for {set i 0} {\$i < $(many 100000 10000)} {incr i} { dict append d [expr {\$i % 997}] x }; puts [dict size \$d]; puts [string length [dict get \$d 5]]"; }

rust_process='rust.*'
rust_files() { echo one.ll; }
# The compiler of rustup has a malloc of its own, which no library replaces.
rust_needs() { rustc --version > /dev/null 2>&1 && ! nm -D --defined-only "$(rustc --print sysroot)/bin/rustc" | grep -q ' T malloc$'; }
rust_work() { rustc -O --crate-type lib --emit=llvm-ir -o one.ll - <<< 'pub fn f(n: u64) -> Vec<String> { (0..n).map(|i| format!("{i}")).collect() }' && wc -l < one.ll; }

xmllint_needs() { command -v xmllint > /dev/null; }
xmllint_work() {
    { echo '<a>'; seq "$(many 50000 5000)" | sed 's|.*|<b n="&"><c>&</c></b>|'; echo '</a>'; } > one.xml
    xmllint --format one.xml | md5sum; xmllint --xpath 'sum(//c)' one.xml
}

sed_needs() { command -v sed > /dev/null; }
sed_work() { seq "$(many 200000 20000)" | sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta; N; s/\n/ /' | md5sum; }

