# Runs OpenSSL's tests as `make test` does, without building anything.
cd "${0%/*}"
export SRCTOP=.. BLDTOP=. EXE_EXT= PERL=/usr/bin/perl
export FIPSKEY=f4556650ac31d35461610bac4ed81b1a181b2d8a43ea2854cbae22ca74560813
exec perl ../test/run_tests.pl
