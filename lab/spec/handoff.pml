/* Local hand-off: a znode that is passed on among the parties of one client. README.md
   says what stands for what. */

#ifndef PARTIES
#define PARTIES 3       /* of the client */
#endif
#ifndef ROUNDS
#define ROUNDS 1        /* how often each of them takes the lock */
#endif
#ifndef REMOTE
#define REMOTE 2        /* how often somebody elsewhere does */
#endif
#ifndef MAX
#define MAX 1           /* how often a znode may be passed on */
#endif
#ifndef CANCELS
#define CANCELS 1       /* attempts that are given up */
#endif
#ifndef ENDS
#define ENDS 1          /* sessions of the client that end */
#endif
#ifndef NUMBERS
#define NUMBERS 1       /* leases that are asked for their number */
#endif

#define NONE 15
#define SEQS 12
#define AHEAD(n) (up & ((1 << (n)) - 1))
#define STANDS(n) ((up >> (n)) & 1)

/* The ensemble. */
short up;               /* znodes that stand */
byte counter;
bool second[SEQS];      /* a znode is of the second session of the client, or of somebody else */

/* The client. */
bool over;              /* its first session has ended, as the client knows */
bool expired;           /* and as the ensemble does */
bool relay;             /* somebody has the turn */
chan waiting = [PARTIES] of { byte };
byte passes;
bool turn[PARTIES];
byte grant[PARTIES];    /* what came with the turn */

/* What is checked. */
byte holders;
byte held[PARTIES];     /* the znode by which the party has the lock, or NONE */
byte leases[SEQS];      /* by one znode */
bool numbered[SEQS];    /* one of them was asked for its number */
byte overtaken;         /* leases of the client since the remote contender queues */
bool queues;
byte done, cancels, ends, numbers;

inline takeLock(n)
{
	assert(STANDS(n) && AHEAD(n) == 0);
	holders++;
	assert(holders == 1)
}

/* leaveRelay gives the turn to the next one, with the znode n or NONE. */
inline leaveRelay(n)
{
	turn[me] = false; grant[me] = NONE;
	if
	:: n == NONE -> passes = 0
	:: else -> passes++
	fi;
	if
#ifdef NOBODY_WOKEN
	:: n == NONE && nempty(waiting) -> relay = false
#endif
	:: nempty(waiting) -> waiting?next; grant[next] = n; turn[next] = true; next = 0
	:: empty(waiting) -> relay = false
	fi
}

#ifdef NUMBER_PASSED
#define MAY_PASS (len(waiting) > 0)
#else
#define MAY_PASS (len(waiting) > 0 && !mineNumbered)
#endif
#ifdef UNBOUNDED
#define WITHIN true
#else
#define WITHIN (passes < MAX)
#endif
#define USABLE(n) ((n) != NONE && (second[n] || !over))
#ifdef SESSION_UNASKED
#define TAKES(n) ((n) != NONE)
#else
#define TAKES(n) USABLE(n)
#endif

proctype Party(byte me)
{
	byte mine = NONE, next, round;
	bool gone, mineNumbered;

again:
	atomic {
		if
		:: !relay -> relay = true; turn[me] = true; passes = 0; goto attempt
		:: else -> waiting!me
		fi
	}
	if
	:: atomic { turn[me] }
	:: atomic { cancels < CANCELS ->
		cancels++;
		if
		:: !turn[me] -> waiting??eval(me); goto finished
		:: else -> gone = true    /* its turn has just come */
		fi }
	fi;
#ifdef TURN_DROPPED
	if
	:: gone -> goto finished
	:: else
	fi;
#endif
	atomic {
		mine = grant[me];
		if
		:: gone && USABLE(mine) ->
			/* What was passed on goes on, or goes. */
			if
			:: nempty(waiting) -> leaveRelay(mine); mine = NONE; goto finished
			:: empty(waiting) -> leaveRelay(NONE); goto delete
			fi
		:: gone && !USABLE(mine) -> leaveRelay(NONE); mine = NONE; goto finished
		:: !gone && TAKES(mine) -> goto hold
		:: else -> grant[me] = NONE
		fi
	}

attempt:
	atomic {
		assert(counter < SEQS);
		mine = counter; counter++; up = up | (1 << mine); second[mine] = over
	}
	if
	:: atomic { STANDS(mine) && AHEAD(mine) == 0 && USABLE(mine) }
	:: atomic { !USABLE(mine) -> goto attempt }
	:: atomic { cancels < CANCELS -> cancels++; gone = true; leaveRelay(NONE); goto delete }
	fi;

hold:
	atomic {
		if
#ifndef SESSION_UNASKED
		:: !USABLE(mine) -> goto attempt
#endif
		:: else
		fi;
		takeLock(mine);
		held[me] = mine;
		leases[mine]++;
		assert(leases[mine] <= MAX + 1);
		if
		:: queues -> overtaken++; assert(overtaken <= MAX + 1)
		:: else
		fi;
		assert(!numbered[mine])
	}
	if
	:: atomic { numbers < NUMBERS && held[me] != NONE -> numbers++; numbered[mine] = true; mineNumbered = true }
	:: skip
	fi;
	/* The release: not held any more before somebody else is. */
	atomic {
#ifndef LATE_RELEASE
		if
		:: held[me] != NONE -> held[me] = NONE; holders--
		:: else                         /* lost */
		fi;
#endif
		if
		:: USABLE(mine) && WITHIN && MAY_PASS -> leaveRelay(mine); mine = NONE
		:: else -> leaveRelay(NONE)
		fi
	}
#ifdef LATE_RELEASE
	atomic {
		if
		:: held[me] != NONE -> held[me] = NONE; holders--
		:: else
		fi
	}
#endif
delete:
	atomic {
		if
		:: mine != NONE -> up = up & ~(1 << mine)
		:: else
		fi;
		mine = NONE; mineNumbered = false; round++;
		if
		:: round < ROUNDS && !gone -> goto again
		:: else
		fi
	}
finished:
	atomic { done++; mine = NONE; round = 0 }
}

/* Somebody elsewhere, who takes the lock when it is first. */
proctype Remote()
{
	byte mine = NONE, round;
again:
	atomic {
		assert(counter < SEQS);
		mine = counter; counter++; up = up | (1 << mine); second[mine] = true;
		queues = true; overtaken = 0
	}
	atomic { AHEAD(mine) == 0 -> takeLock(mine); queues = false; overtaken = 0 }
	atomic { holders--; up = up & ~(1 << mine); mine = NONE; round++ }
	if
	:: round < REMOTE -> goto again
	:: else
	fi;
	atomic { done++; round = 0 }
}

/* The client's session ends: first as it knows itself, before the ensemble does. */
proctype Faults()
{
	byte i;
end:
	do
	:: atomic { ends < ENDS && !over ->
		ends++; over = true;
		do
		:: i < PARTIES ->
			if
			:: held[i] != NONE && !second[held[i]] -> held[i] = NONE; holders--
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0 }
	:: atomic { over && !expired ->
		expired = true;
		do
		:: i < SEQS ->
			if
			:: !second[i] -> up = up & ~(1 << i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0 }
	od
}

init
{
	byte i;
	atomic {
		do
		:: i < PARTIES -> grant[i] = NONE; held[i] = NONE; run Party(i); i++
		:: else -> break
		od;
		i = 0;
		run Remote(); run Faults()
	}
	/* No ghost, and nobody has the turn. */
	atomic {
		done == PARTIES + 1 && (!over || expired) ->
		assert(up == 0); assert(holders == 0); assert(!relay && empty(waiting))
	}
}
