/* The queue protocol of docent's fair locks. README.md says what stands for what. */

#ifndef N
#define N 3             /* contenders */
#endif
#ifndef CUTS
#define CUTS 1          /* connections that break, with requests and replies lost */
#endif
#ifndef ENDS
#define ENDS 1          /* sessions that end */
#endif
#ifndef DELETIONS
#define DELETIONS 1     /* znodes of waiters that an operator deletes */
#endif
#ifndef CANCELS
#define CANCELS 1       /* attempts that are given up */
#endif

#define S     6         /* sessions: two for each of up to three contenders */
#define SEQS  7         /* numbers that the directory's counter can give */
#define NONE  31        /* no znode */
#define EMPTY 255       /* no lock holder yet */

#define OWNER(s)    ((s) / 2)
#define PLAIN(n)    (2 * (n))       /* the sequential znode number n */
#define BESIDE(id)  ((id) + 1)      /* the read znode beside it: a downgrade's */
#define HAS(m, id)  (((m) >> (id)) & 1)
#define WITHOUT(m, id) ((m) & ~(1 << (id)))
#define AHEAD(m, id) ((m) & ((1 << (id)) - 1))

#ifdef READ_WRITE
#define READER(me) ((me) == 2)      /* 0 is a writer that goes on as a reader, 1 a writer */
#define WAITS_AS_READER(id) READER(OWNER(by[id]))
#ifdef HAND_OVER_UNDER_READ_WRITE
#define HAND_OVER only
#else
#define HAND_OVER false
#endif
#else
#define READER(me) false
#define WAITS_AS_READER(id) false
#define HAND_OVER only
#endif

#define CANCEL (cancels < CANCELS)

mtype = { Create, List,                         /* requests */
	Created, Listed,                        /* replies */
	Gone, Cut, Ended };                     /* events */

/* The ensemble. */
short up;               /* znodes that stand, one bit each */
byte by[2 * SEQS];      /* the session of each */
byte counter;
bool alive[S];
bool connected[S];      /* the ensemble's answers reach the client */
short watches[S];

chan req[S] = [2] of { mtype };     /* Only the create and the listing behind it are on their way for a while. */
chan rep[S] = [5] of { mtype, short };

/* The contenders. */
byte current[3];        /* session */
bool givenUp[S];        /* the client has declared the session lost */
bool secured[S];        /* a lease stands on it */
bool entered[3];
bool fin[3];
byte done;

/* What is checked. */
bool writing[3];
bool reading[3];
byte writers;
byte readers;
int  fence = -1;

byte cuts, ends, deletions, cancels;

inline reply(s, type, arg)
{
	if
	:: connected[s] -> assert(nfull(rep[s])); rep[s]!type,arg
	:: else
	fi
}

inline vanish(id)
{
	up = WITHOUT(up, id); by[id] = 0;
	w = 0;
	do
	:: w < S ->
		if
		:: HAS(watches[w], id) -> watches[w] = WITHOUT(watches[w], id); reply(w, Gone, id)
		:: else
		fi;
		w++
	:: else -> break
	od
}

inline forget(s)
{
	do
	:: nempty(req[s]) -> req[s]?_
	:: empty(req[s]) -> break
	od;
	forgetReplies(s)
}

inline forgetReplies(s)
{
	do
	:: nempty(rep[s]) -> rep[s]?_,_
	:: empty(rep[s]) -> break
	od
}

/* The oldest znode of the session. Over the looks for a guid that does not tell
   the session are a broken variant: see OLD_SESSION. */
inline search(s, found)
{
	found = NONE;
	w = 0;
	do
	:: w < SEQS ->
		if
#ifdef OLD_SESSION
		:: found == NONE && HAS(up, PLAIN(w)) && OWNER(by[PLAIN(w)]) == OWNER(s) -> found = PLAIN(w)
#else
		:: found == NONE && HAS(up, PLAIN(w)) && by[PLAIN(w)] == s -> found = PLAIN(w)
#endif
		:: else
		fi;
		w++
	:: else -> break
	od
}

/* Contenders are alike, so only runs in which they first enter in their order are
   looked at. */
#ifdef READ_WRITE
#define MAY_SERVE(s) true
#else
#define MAY_SERVE(s) (s < 2 || entered[OWNER(s) - 1] || fin[OWNER(s) - 1] || req[s]?[List])
#endif

inline serve(s)
{
	atomic {
		nempty(req[s]) && MAY_SERVE(s) ->
		req[s]?type;
		if
		:: !alive[s]
		:: alive[s] && type == Create ->
			assert(counter < SEQS);
			id = PLAIN(counter); counter++;
			up = up | (1 << id); by[id] = s; entered[OWNER(s)] = true;
			reply(s, Created, id)
		:: alive[s] && type == List -> reply(s, Listed, up)
		fi;
		type = 0; id = 0
	}
}

active proctype Ensemble()
{
	mtype type; byte id;
end:
	do
	:: serve(0) :: serve(1) :: serve(2) :: serve(3) :: serve(4) :: serve(5)
	od
}

/* The connection breaks: what is in it is lost, and so are the watches. What the
   ensemble had applied before stays applied. The client comes back at once. */
inline cut(s)
{
	forget(s);
	watches[s] = 0;
	rep[s]!Cut,0
}

/* The client's clock ends the session, and the lease on it. What is on its way
   may still reach the ensemble, until that has expired the session too. */
inline declareLost(s)
{
	leave(OWNER(s));
	secured[s] = false; givenUp[s] = true; connected[s] = false;
	watches[s] = 0;
	forgetReplies(s);
	rep[s]!Ended,0
}

inline expire(s)
{
	alive[s] = false;
	watches[s] = 0;
	id = 0;
	do
	:: id < 2 * SEQS ->
		if
		:: HAS(up, id) && by[id] == s -> vanish(id)
		:: else
		fi;
		id++
	:: else -> break
	od;
	if
	:: !givenUp[s] -> forget(s); connected[s] = false; rep[s]!Ended,0
	:: else
	fi;
	id = 0; w = 0
}

inline leave(me)
{
	if
	:: writing[me] -> writing[me] = false; writers--
	:: else
	fi;
	if
	:: reading[me] -> reading[me] = false; readers--
	:: else
	fi
}

#ifdef LATE_LOSS
#define MAY_EXPIRE(s) true
#else
#define MAY_EXPIRE(s) !secured[s]
#endif

/* BUSY says that a cut would cost something. */
#define BUSY(s) (nempty(req[s]) || nempty(rep[s]) || watches[s] != 0)

#define FAULTS(me) \
	:: atomic { cuts < CUTS && !fin[me] && connected[current[me]] && BUSY(current[me]) -> \
		cuts++; s = current[me]; cut(s); s = 0 } \
	:: atomic { ends < ENDS && !fin[me] && current[me] == 2*me && connected[2*me] -> \
		ends++; s = 2*me; declareLost(s); s = 0 } \
	:: atomic { ends < ENDS && !fin[me] && current[me] == 2*me && connected[2*me] && MAY_EXPIRE(2*me) -> \
		ends++; s = 2*me; expire(s); s = 0 } \
	:: atomic { givenUp[2*me] && alive[2*me] -> s = 2*me; expire(s); s = 0 }

#define OPERATOR(n) \
	:: atomic { deletions < DELETIONS && HAS(up, PLAIN(n)) && AHEAD(up, PLAIN(n)) != 0 -> \
		deletions++; id = PLAIN(n); vanish(id); id = 0; w = 0 }

active proctype Faults()
{
	byte s, id, w;
end:
	do
	FAULTS(0)
	FAULTS(1)
#if N > 2
	FAULTS(2)
#endif
#if DELETIONS > 0
	OPERATOR(1) OPERATOR(2) OPERATOR(3) OPERATOR(4)
#endif
	od
}

/* Nobody that stands in the way of a grant may have it. */
inline enterCritical()
{
	if
	:: reader -> reading[me] = true; readers++
	:: else -> writing[me] = true; writers++
	fi;
	assert(writers == 0 || writers == 1 && readers == 0 || readers == 1 && writing[me] && reading[me]);
#ifndef READ_WRITE
	assert(mine > fence); fence = mine
#endif
}

/* nearest sets ahead to whom the znode waits for, and only to whether there is
   nobody else ahead that could stand in the way. */
inline nearest()
{
	ahead = NONE; only = true;
	n = mine;
	do
	:: n > 0 ->
		n--;
		if
		:: HAS(mask, n) && (!reader || n % 2 == 0 && !WAITS_AS_READER(n)) ->
			if
			:: ahead == NONE -> ahead = n
			:: else -> only = false
			fi
		:: else
		fi
	:: else -> break
	od;
	n = 0
}



/* A cut is noticed before the next request, if not by its own event. */
inline reconnect()
{
	if
	:: rep[s]?[Cut,0] -> rep[s]?Cut,0
	:: else
	fi
}

proctype Contender(byte me)
{
	byte s = 2 * me;
	byte mine = NONE, ahead = NONE, other = NONE, n, w;
	short mask;
	bool reader = READER(me);
	bool created, listed;   /* replies to the pair that enters */
	bool only, cancelled;
	mtype type; short arg;

enter:
	/* Create and listing leave together, in either order: see README.md. */
	atomic {
		mine = NONE; ahead = NONE; created = false; listed = false; mask = 0; type = 0; arg = 0;
		if
		:: !connected[s] -> goto awaitEnd
		:: else
		fi;
		reconnect();
		if
		:: req[s]!Create; req[s]!List
		:: req[s]!List; req[s]!Create
		fi
	}
	do
	:: atomic { !cancelled && CANCEL -> cancels++; cancelled = true
#ifdef FORGETFUL
		; goto finished
#endif
		}
	:: atomic { rep[s]?type,arg ->
		if
		:: type == Created -> created = true; mine = arg
		:: type == Listed -> listed = true; mask = arg
		:: type == Cut && mine != NONE -> goto look
		:: type == Cut && mine == NONE -> goto lookup
		:: type == Ended -> goto ended
		:: else
		fi;
		if
		:: created && listed -> break
		:: else
		fi }
	od;
	goto decide;

lookup:
	/* The create may have been applied. */
	atomic {
		if
		:: !connected[s] -> goto awaitEnd
		:: else
		fi;
		reconnect();
#ifdef NO_SYNC
		if              /* a server that lags behind has nothing of it yet */
		:: mine = NONE
		:: search(s, mine)
		fi;
#else
		search(s, mine);
#endif
		w = 0;
		if
		:: mine != NONE -> goto look
		:: mine == NONE && cancelled -> goto finished
		:: mine == NONE && !cancelled -> goto enter
		fi
	}

look:
	skip;
	atomic {
		ahead = NONE; type = 0; arg = 0;
		if
		:: !connected[s] -> goto awaitEnd
		:: else
		fi;
		reconnect();
		mask = up;
		if
		:: !HAS(mask, mine) && cancelled -> goto finished
		:: !HAS(mask, mine) && !cancelled -> goto enter
		:: else
		fi
	}

decide:
	atomic {
		if
		:: cancelled -> goto withdraw
		:: else
		fi;
#ifndef BLIND
		if
		:: !HAS(mask, mine) -> goto look      /* taken before the create */
		:: else
		fi;
#endif
		nearest(); mask = 0;
		if
		:: ahead == NONE -> goto grant
		:: else
		fi
	}
	/* The two requests are answered in order; what happens between them shows in
	   the second's answer or in an event, which come to the same. */
	skip;
	atomic {
		if
		:: !connected[s] -> goto awaitEnd
		:: connected[s] && rep[s]?[Cut,0] -> goto look
		:: connected[s] && !rep[s]?[Cut,0] && HAS(up, ahead) -> watches[s] = watches[s] | (1 << ahead)
		:: connected[s] && !rep[s]?[Cut,0] && !HAS(up, ahead) ->
#ifdef DEAF
			skip                          /* as if the watch stood */
#else
			goto look
#endif
		fi;
#ifndef NO_OWN_NODE
		if
		:: HAS(up, mine) -> watches[s] = watches[s] | (1 << mine)
		:: else -> goto enter
		fi
#endif
	}
	do
	:: atomic { CANCEL -> cancels++; cancelled = true; goto withdraw }
	:: atomic { rep[s]?type,arg ->
		if
		:: type == Gone && arg == mine -> goto enter
		:: type == Gone && arg == ahead ->
			if
			:: HAND_OVER -> goto grant
			:: else -> goto look
			fi
#ifdef TRUSTING
		:: type == Cut                        /* as if watches survived */
#else
		:: type == Cut -> goto look
#endif
		:: type == Ended -> goto ended
		:: else
		fi }
	od;

grant:
	skip;
	/* The hold is secured: the session stands, and does until the client says otherwise. */
	atomic {
		ahead = NONE; type = 0; arg = 0;
#ifndef NO_SESSION
		if
		:: alive[s] && !givenUp[s]
		:: else -> goto awaitEnd
		fi;
#endif
		secured[s] = true;
		enterCritical()
	}
#ifdef READ_WRITE
	/* The downgrade: a read znode of the same number, then the writer's goes. */
	if
	:: atomic { me == 0 && connected[s] ->
		other = BESIDE(mine); up = up | (1 << other); by[other] = s;
		reading[me] = true; readers++ }
	:: else
	fi;
	atomic {
		if
		:: other != NONE && writing[me] -> writing[me] = false; writers--
		:: else
		fi;
		if
		:: other != NONE && connected[s] -> vanish(mine); w = 0; mine = other; other = NONE
		:: else
		fi
	}
#endif

	/* Not held any more before the znode goes. */
#ifdef LATE_RELEASE
	atomic {
		if
		:: connected[s] -> vanish(mine); w = 0
		:: else
		fi
	}
#endif
	atomic { leave(me); secured[s] = false }
withdraw:
	skip;
	atomic {
		if
		:: connected[s] && HAS(up, mine) -> vanish(mine); w = 0
		:: else                               /* it goes with its session */
		fi;
		goto finished
	}

awaitEnd:
	rep[s]?Ended,_;
ended:
	/* A new session knows nothing of the old one's znodes; they go with that. */
	atomic {
		s++; current[me] = s; connected[s] = true;
		mine = NONE; ahead = NONE; mask = 0; type = 0; arg = 0;
		if
		:: cancelled -> goto finished
		:: else
		fi
	}
#ifdef OLD_SESSION
	goto lookup;
#else
	goto enter;
#endif

finished:
	atomic { fin[me] = true; done++; mine = NONE; ahead = NONE; mask = 0; type = 0; arg = 0 }
}

init
{
	byte s;
	atomic {
		do
		:: s < S -> alive[s] = true; connected[s] = (s % 2 == 0); s++
		:: else -> break
		od;
		s = 0;
		do
		:: s < N -> current[s] = 2 * s; s++
		:: else -> break
		od;
		s = 0;
		do
		:: s < N -> run Contender(s); s++
		:: else -> break
		od;
		s = 0
	}
	/* No ghost: all have left, and what they left goes with its session. */
	atomic {
		done == N && !(givenUp[0] && alive[0]) && !(givenUp[2] && alive[2]) && !(givenUp[4] && alive[4]) ->
		assert(up == 0); assert(writers == 0 && readers == 0)
	}
}

#ifdef LIVE
ltl granted { <> (done == N) }
#endif
