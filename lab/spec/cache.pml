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
bool mark[2];           /* has to be read */
bool ready, valid;
byte needed;            /* what was committed when the fill began */

#define DATA(z) state[shown[z]]

inline reveal(w, i)
{
	assert(i >= shown[w]);  /* truth: never an earlier state */
	shown[w] = i
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
			:: state[committed] != 0 -> state[committed + 1] = 0
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
		:: armed && state[applied + 1] == 0 -> down!DELETED(0, applied + 1); down!DELETED(1, applied + 1)
		:: else
		fi;
		applied++ }
	:: atomic { up?READ(z) -> down!REPLY(z, applied) }
	:: atomic { up?ARM(z) -> armed = true; down!ARMED(0, applied) }
	:: atomic { up?[CHECK(_)] && applied >= needed -> up?CHECK(z); down!PASSED(0, applied) }
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

/* The next event is there. */
#define NEWS (mine == link && (down?[EVENT(_, _)] || down?[DELETED(_, _)]))

inline fill()   /* is over when all is read that was marked when it began */
{
	if
	:: filling && !(first[0] || first[1]) ->
		filling = false;
		ready = true;
		assert(shown[0] >= needed && shown[1] >= needed)        /* complete */
	:: else
	fi
}

inline take()   /* an event, while nothing is read */
{
	down?kind(z, n);
	if
	:: kind == EVENT -> mark[z] = true
	:: kind == DELETED -> reveal(z, n); mark[z] = false; first[z] = false;
#ifdef SETTLED_BY_EVENT
		if :: !mark[0] && !mark[1] -> settled() :: else fi
#endif
	fi
}

active proctype Cache()
{
	byte mine, z, n, waits, got[2], gone[2];
	bool asks, filling, some, taken[2], changed[2], first[2];
	mtype kind;
end:	do
	/* The watch is set on each connection. Then everything is read again. */
	:: !valid ->
		atomic { mine = link; up!ARM(0) };
		do
		:: atomic { mine == link && down?[ARMED(_, _)] ->
			down?ARMED(z, n);
			valid = true; asks = true; filling = false;
			mark[0] = true; mark[1] = true;
			first[0] = false; first[1] = false };
			break
		:: mine != link -> break
		od

	/* A transaction is answered by the own server after all that was committed before. */
	:: atomic { valid && asks && mine == link -> needed = committed;
#ifdef NO_CHECK
		down!PASSED(0, 0)
#else
		up!CHECK(needed)
#endif
		};
		do
		:: atomic { NEWS -> take() }
		:: atomic { mine == link && down?[PASSED(_, _)] ->
			down?PASSED(z, n);
			asks = false; filling = true;
#ifndef EARLY_READY
			first[0] = mark[0]; first[1] = mark[1];
#endif
			fill() };
			break
		:: mine != link -> break
		od

	/* A look reads all that is marked. */
	:: atomic { valid && !asks && (mark[0] || mark[1]) && mine == link ->
		waits = 0; some = false; z = 0;
		do
		:: z < 2 ->
			taken[z] = mark[z]; mark[z] = false;
			gone[z] = 0; changed[z] = false;
			if :: taken[z] -> up!READ(z); waits++ :: else fi;
			z++
		:: else -> break
		od };
		do
		:: atomic { mine == link && down?[REPLY(_, _)] -> down?REPLY(z, n); got[z] = n; waits-- }
		:: atomic { NEWS ->
			down?kind(z, n); some = true;
			if
#ifdef DEAF
			:: kind == EVENT
#else
			:: kind == EVENT -> changed[z] = true
#endif
			:: kind == DELETED -> gone[z] = n; changed[z] = false
			fi }
		/* What has come by now, and maybe more, is drained. */
		:: atomic { mine == link && waits == 0 ->
			z = 0;
			do
			:: z < 2 ->
#ifdef OLD_REPLY
				if :: taken[z] -> reveal(z, got[z]) :: else fi;
#else
				if :: taken[z] && gone[z] == 0 -> reveal(z, got[z]) :: else fi;
#endif
				if :: gone[z] > 0 -> reveal(z, gone[z]) :: else fi;
				mark[z] = changed[z];
				first[z] = false;
				z++
			:: else -> break
			od;
			if :: !some && !mark[0] && !mark[1] -> settled() :: else fi;
			fill() };
			break
		/* What was read over a connection that is gone does not count. */
		:: mine != link ->
#ifdef UNWATCHED
			atomic { valid = true; mine = link; mark[0] = false; mark[1] = false };
#endif
			break
		od

	:: atomic { valid && !asks && !mark[0] && !mark[1] && NEWS -> take() }
	od
}

/* In the end the cache has what the ensemble has, and is ready. */
active proctype End()
{
	timeout -> assert(committed == WRITES && ready && shown[0] == WRITES && shown[1] == WRITES)
}

init { run Writer() }
