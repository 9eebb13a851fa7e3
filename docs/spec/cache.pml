/* How a cache stays complete: two znodes that are always written by one transaction, a server that
   lags, connections that break. README.md says what is checked, and which code is which. */

#ifndef WRITES
#define WRITES 3        /* transactions of another client */
#endif
#ifndef CUTS
#define CUTS 1          /* connections that break */
#endif

mtype = { EVENT, DELETED, REPLY, ARMED, PASSED };
mtype = { READ, ARM, CHECK };

/* The ensemble: state[i] is what both znodes hold after i transactions, 0 for no znode. */
byte state[WRITES + 1];
byte committed;

/* The server of the cache's client: how much it has applied, and whether it has the watch. */
byte applied;
bool armed;
chan up = [3] of { mtype, byte };
chan down = [12] of { mtype, byte, byte };      /* kind, znode, number of the transaction */
byte link;              /* counts connections */
byte cuts;

/* The cache. */
byte shown[2];          /* the number of the transaction whose state it shows */
bool mark[2], deep[2];  /* has to be read; for the fill */
bool ready, valid;
byte needed;            /* what was committed when the fill began */

#define DATA(z) state[shown[z]]

inline show(z, n)
{
	assert(n >= shown[z]);  /* truth: never an earlier state */
	shown[z] = n
}

inline settled()
{
	assert(DATA(0) == DATA(1))      /* one moment */
}

proctype Writer()
{
	do
	:: committed < WRITES ->
		atomic {
			if
			:: state[committed + 1] = committed + 1
			:: state[committed + 1] = 0
			fi;
			committed++
		}
	:: committed == WRITES -> break
	od
}

/* The server applies what is committed, and notifies of it before it answers. */
active proctype Server()
{
	byte z;
end:	do
	:: atomic { applied < committed ->
		if
		:: armed && state[applied + 1] != 0 -> down!EVENT(0, applied + 1); down!EVENT(1, applied + 1)
		:: armed && state[applied + 1] == 0 && state[applied] != 0 -> down!DELETED(0, applied + 1); down!DELETED(1, applied + 1)
		:: else
		fi;
		applied++ }
	:: atomic { up?READ(z) -> down!REPLY(z, applied) }
	:: atomic { up?ARM(z) -> armed = true; down!ARMED(0, applied) }
	:: atomic { up?CHECK(z) -> committed <= applied || z <= applied; down!PASSED(0, applied) }
	od
}

/* A connection breaks. The next server may have applied less, but not less than the client has seen. */
active proctype Network()
{
end:	do
	:: atomic { cuts < CUTS ->
		cuts++;
		link++;
		armed = false;
		valid = false;
		ready = false;
		do
		:: nempty(up) -> up?_(_)
		:: nempty(down) -> down?_(_, _)
		:: empty(up) && empty(down) -> break
		od }
	od
}

active proctype Cache()
{
	byte mine, z, n, got[2], waits;
	bool asks, taken[2], gone[2], changed[2], some, again[2];
	mtype kind;
	mine = 99;
end:	do
	/* The watch is set on each connection, and everything is read again. */
	:: !valid ->
		atomic { mine = link; up!ARM(0) };
		do
		:: atomic { mine == link && down?[ARMED(_, _)] -> down?ARMED(z, n);
			valid = true; asks = true;
			mark[0] = true; mark[1] = true; deep[0] = true; deep[1] = true };
			break
		:: mine != link -> break
		od
#ifdef NO_CHECK
	:: atomic { valid && asks -> asks = false; needed = committed }
#else
	:: valid && asks ->
		atomic { mine == link -> needed = committed; up!CHECK(committed) };
		do
		:: atomic { mine == link && down?[PASSED(_, _)] -> down?PASSED(z, n) }; asks = false; break
		:: atomic { mine == link && (down?[EVENT(_, _)] || down?[DELETED(_, _)]) -> down?kind(z, n);
			if :: kind == EVENT -> mark[z] = true :: kind == DELETED -> show(z, n); mark[z] = deep[z] fi }
		:: mine != link -> break
		od
#endif
	/* A look: all marks at once. */
	:: valid && !asks && (mark[0] || mark[1]) ->
		atomic {
			waits = 0; some = false;
			z = 0;
			do
			:: z < 2 ->
				taken[z] = mark[z]; gone[z] = false; changed[z] = false; got[z] = 0;
				if :: mark[z] && mine == link -> up!READ(z); waits++ :: else fi;
				mark[z] = false;
				z++
			:: else -> break
			od
		};
		do
		:: atomic { mine == link && waits > 0 && down?[REPLY(_, _)] -> down?REPLY(z, n); got[z] = n; waits-- }
		:: atomic { mine == link && (down?[EVENT(_, _)] || down?[DELETED(_, _)]) -> down?kind(z, n);
			some = true;
			if
#ifndef DEAF
			:: kind == EVENT -> changed[z] = true
#else
			:: kind == EVENT
#endif
			:: kind == DELETED -> gone[z] = n; again[z] = n; changed[z] = false
			fi }
		/* The drain ends where nothing is there that came before the last reply. */
		:: mine == link && waits == 0 -> break
		:: mine != link -> break
		od;
		atomic {
			if
			:: mine != link -> skip         /* what was read does not count; all is marked again */
			:: else ->
				z = 0;
				do
				:: z < 2 ->
#ifdef OLD_REPLY
					if :: taken[z] -> show(z, got[z]) :: else fi;
#else
					if :: taken[z] && !gone[z] -> show(z, got[z]) :: else fi;
#endif
					if :: gone[z] -> skip :: else fi;
					mark[z] = changed[z]; deep[z] = false;
					z++
				:: else -> break
				od;
				if
				:: !some && !mark[0] && !mark[1] -> settled()
				:: else
				fi
			fi
		};
	/* Nothing to read: the next change. */
	:: atomic { valid && !asks && !mark[0] && !mark[1] && mine == link && (down?[EVENT(_, _)] || down?[DELETED(_, _)]) ->
		down?kind(z, n);
		if
		:: kind == EVENT -> mark[z] = true
		:: kind == DELETED -> show(z, n)
		fi }
	od
}

init { run Writer() }
